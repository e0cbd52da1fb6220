import { IconAlertTriangle } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import type { ModelShare } from "../api/limits";
import { countText } from "./amounts";
import classes from "./LimitList.module.css";
import { Meter } from "./Meter";

function ModelItem({ model }: { model: ModelShare }) {
  const { t, i18n } = useTranslation();
  const count = (value: number) => countText(value, i18n.language);
  const capacity = count(model.capacity);
  const text =
    model.in_use === 0
      ? t("usage.models.idle", { capacity })
      : t("usage.models.share", { mine: count(model.mine), inUse: count(model.in_use), capacity });
  // While a capacity is lowered, more may be in use than there are to be.
  const whole = Math.max(model.capacity, model.in_use, 1);
  return (
    <li className={classes.item} data-model={model.model}>
      <div className={classes.line}>
        <strong>{model.model}</strong>
        <span>{text}</span>
      </div>
      <Meter
        text={`${model.model}: ${text}`}
        parts={[
          { part: model.mine / whole, look: "free" },
          { part: (model.in_use - model.mine) / whole, look: "others" },
        ]}
      />
      {model.state !== "open" && (
        <span className={classes.mark} data-fill="reached">
          <IconAlertTriangle size={16} aria-hidden />
          {t(`usage.models.${model.state}`)}
        </span>
      )}
    </li>
  );
}

/** How much of each model is in use now, and how much of that is one's own. */
export function ModelList({ models }: { models: ModelShare[] }) {
  return (
    <ul className={classes.list}>
      {models.map((model) => (
        <ModelItem key={model.model} model={model} />
      ))}
    </ul>
  );
}
