import { Menu, UnstyledButton } from "@mantine/core";
import { IconAlertTriangle, IconSelector } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import type { ServedModel } from "../api/models";
import classes from "./ModelPicker.module.css";
import { modelText } from "./modelText";
import { isOut } from "./resolve";
import type { ChosenModel } from "./useModels";

interface ModelItemProps {
  model: ServedModel;
  onChoose: () => void;
}

function ModelItem({ model, onChoose }: ModelItemProps) {
  const { t, i18n } = useTranslation();
  return (
    <Menu.RadioItem
      value={model.model}
      className={classes.item}
      closeMenuOnClick
      // Of the one that answers, too, which may do so in the place of another choice.
      onClick={onChoose}
    >
      <span className={classes.line}>
        <strong className={classes.name}>{model.model}</strong>{" "}
        {model.default && <span className={classes.mark}>{t("models.default")}</span>}
      </span>
      <span className={classes.about}>{modelText(i18n, model)}</span>
      {isOut(model) && (
        <span className={classes.out}>
          <IconAlertTriangle size={14} aria-hidden /> {t("models.out")}
        </span>
      )}
    </Menu.RadioItem>
  );
}

interface ModelPickerProps {
  chosen: ChosenModel;
  onChoose: (model: string) => void;
}

/** Which model answers, and a choice of it where there is one. */
export function ModelPicker({ chosen, onChoose }: ModelPickerProps) {
  const { t } = useTranslation();
  const { models, answering } = chosen;
  if (answering === undefined || models.length < 2) return null;
  return (
    <Menu position="top-start" shadow="md" onOpen={chosen.look}>
      <Menu.Target>
        <UnstyledButton
          className={classes.target}
          aria-label={t("models.choose", { model: answering.model })}
        >
          {isOut(answering) && <IconAlertTriangle size={16} aria-hidden />}
          <span className={classes.name}>{answering.model}</span>
          <IconSelector size={16} aria-hidden />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown className={classes.dropdown}>
        <Menu.RadioGroup value={answering.model}>
          {models.map((model) => (
            <ModelItem
              key={model.model}
              model={model}
              onChoose={() => {
                onChoose(model.model);
              }}
            />
          ))}
        </Menu.RadioGroup>
      </Menu.Dropdown>
    </Menu>
  );
}

/** Which choice could not be kept, and who answers instead; empty where it was. */
export function useInsteadText({ gone, isMissing, chosen, answering }: ChosenModel): string {
  const { t } = useTranslation();
  if (gone !== undefined && answering !== undefined) {
    return t("models.gone", { model: gone, instead: answering.model });
  }
  return isMissing && chosen !== undefined ? t("models.missing", { model: chosen }) : "";
}
