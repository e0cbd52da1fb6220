import { Button, Text, TextInput } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { type KeyboardEvent, type SubmitEvent, useState } from "react";
import { useTranslation } from "react-i18next";

import { type AdminPool, patchPool } from "../api/admin";
import { toProblem } from "../api/problem";
import { capacityText, poolStateText } from "./adminText";
import { errorsOf, type FieldErrors, readNumber } from "./limitFields";
import classes from "./Operator.module.css";
import { useSaving } from "./useAdmin";
import { useEditing } from "../layout/useEditing";
import { Facts } from "../layout/Facts";

function CapacityForm({ pool, onClose }: { pool: AdminPool; onClose: () => void }) {
  const { t } = useTranslation();
  const { pool: name, set_capacity: set, declared_capacity: declared } = pool;
  const [text, setText] = useState(set === null ? "" : String(set));
  const [errors, setErrors] = useState<FieldErrors>({});
  const saving = useSaving((capacity: number | null) => patchPool(name, capacity), onClose);

  function submit(event: SubmitEvent) {
    event.preventDefault();
    const capacity = readNumber(text);
    if (capacity === null && text.trim() !== "") {
      setErrors({ capacity: t("operator.notANumber") });
      return;
    }
    setErrors({});
    saving.mutate(capacity, {
      onError: (error) => {
        const found = errorsOf(toProblem(error), ["capacity"]);
        setErrors({ capacity: Object.values(found)[0] ?? "" });
      },
    });
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key === "Escape") onClose();
  }

  const error = errors["capacity"];
  return (
    <form className={classes.form} onSubmit={submit} onKeyDown={onKeyDown}>
      <TextInput
        autoFocus
        label={t("operator.pools.field", { pool: name })}
        description={t("operator.pools.hint", { declared })}
        classNames={{ input: classes.input ?? "" }}
        inputMode="numeric"
        autoComplete="off"
        value={text}
        error={error === undefined ? undefined : error || t("operator.failedToSave")}
        onChange={(event) => {
          setText(event.currentTarget.value);
        }}
      />
      <div className={classes.inline}>
        <Button type="submit" loading={saving.isPending}>
          {t("operator.save")}
        </Button>
        <Button variant="default" onClick={onClose}>
          {t("operator.cancel")}
        </Button>
      </div>
    </form>
  );
}

function PoolItem({ pool }: { pool: AdminPool }) {
  const { t, i18n } = useTranslation();
  const { isEditing, button, open, close } = useEditing();
  const state = poolStateText(i18n, pool);
  return (
    <li className={classes.item} data-pool={pool.pool}>
      <div className={classes.head}>
        <h3 className={classes.name}>{pool.pool}</h3>
        {!isEditing && (
          <Button
            ref={button}
            variant="default"
            aria-label={t("operator.pools.edit", { pool: pool.pool })}
            onClick={open}
          >
            {t("operator.edit")}
          </Button>
        )}
      </div>
      <Facts
        facts={[
          [
            t("operator.pools.state"),
            pool.state === "open" ? (
              state
            ) : (
              <span className={classes.attention}>
                <IconAlertTriangle size={16} aria-hidden />
                {state}
              </span>
            ),
          ],
          [
            t("operator.pools.inUse"),
            t("operator.models.inUseOf", { inUse: pool.in_use, capacity: pool.capacity }),
          ],
          [t("operator.pools.capacity"), capacityText(i18n, pool)],
          [t("operator.pools.cooling"), pool.cooling],
          [t("operator.pools.model"), pool.model],
          [t("operator.pools.server"), pool.server],
        ]}
      />
      {isEditing && <CapacityForm pool={pool} onClose={close} />}
    </li>
  );
}

/** The model servers: how they are doing, and how many calls each takes at once. */
export function Pools({ pools }: { pools: AdminPool[] }) {
  const { t } = useTranslation();
  if (pools.length === 0) return <Text c="dimmed">{t("operator.pools.none")}</Text>;
  return (
    <ul className={classes.list}>
      {pools.map((pool) => (
        <PoolItem key={pool.pool} pool={pool} />
      ))}
    </ul>
  );
}
