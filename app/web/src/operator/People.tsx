import { Button, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import type { AdminUser } from "../api/admin";
import { Facts } from "../layout/Facts";
import { personPath } from "../layout/paths";
import { useEditing } from "../layout/useEditing";
import { countText, measuredText } from "../limits/amounts";
import { adminWhyText, shortId } from "./adminText";
import classes from "./Operator.module.css";
import { ShortId } from "./ShortId";
import { UserLimitsForm } from "./UserLimitsForm";

interface PersonItemProps {
  user: AdminUser;
  onEditing: (user: AdminUser, isEditing: boolean) => void;
}

function PersonItem({ user, onEditing }: PersonItemProps) {
  const { t, i18n } = useTranslation();
  const { isEditing, button, open, close } = useEditing();
  const count = (value: number) => countText(value, i18n.language);
  const { user_id: id } = user;
  return (
    <li className={classes.item} data-person={id}>
      <div className={classes.head}>
        <h3 className={classes.name}>
          <ShortId id={id} href={personPath(id)} />
        </h3>
        {!isEditing && (
          <Button
            ref={button}
            variant="default"
            aria-label={t("operator.people.edit", { id: shortId(id) })}
            onClick={() => {
              open();
              onEditing(user, true);
            }}
          >
            {t("operator.edit")}
          </Button>
        )}
      </div>
      <Facts
        facts={[
          [t("operator.people.plan"), user.plan ?? t("operator.people.noPlan")],
          [t("operator.people.weight"), count(user.weight)],
          [t("operator.people.running"), count(user.running)],
          [t("operator.people.queued"), count(user.queued)],
          [t("operator.people.seats"), count(user.seats)],
          [t("operator.people.waitingCalls"), count(user.waiting_calls)],
          [t("operator.people.longestWait"), measuredText(i18n, user.longest_wait_seconds)],
          [t("operator.people.lag"), count(user.lag)],
          ...(user.why === null
            ? []
            : [[t("operator.people.why"), adminWhyText(i18n, user.why)] as [string, string]]),
        ]}
      />
      {isEditing && (
        <UserLimitsForm
          userId={id}
          onClose={() => {
            close();
            onEditing(user, false);
          }}
        />
      )}
    </li>
  );
}

/** Everybody who has something running or waiting, and what they may use. */
export function People({ users }: { users: AdminUser[] }) {
  const { t } = useTranslation();
  const [edited, setEdited] = useState<AdminUser[]>([]);
  const present = new Set(users.map(({ user_id: id }) => id));
  // Nobody's form goes away because their last run has ended.
  const shown = [...users, ...edited.filter(({ user_id: id }) => !present.has(id))];

  function onEditing(user: AdminUser, isEditing: boolean) {
    const others = edited.filter(({ user_id: id }) => id !== user.user_id);
    setEdited(isEditing ? [...others, user] : others);
  }

  return (
    <>
      {shown.length === 0 && <Text c="dimmed">{t("operator.people.none")}</Text>}
      <ul className={classes.list}>
        {shown.map((user) => (
          <PersonItem key={user.user_id} user={user} onEditing={onEditing} />
        ))}
      </ul>
    </>
  );
}
