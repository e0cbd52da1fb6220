import { TextInput } from "@mantine/core";
import { type ComponentProps, useState } from "react";

import { Confirm } from "./Confirm";
import classes from "./TypedConfirm.module.css";

interface TypedConfirmProps extends Omit<ComponentProps<typeof Confirm>, "canConfirm"> {
  /** What has to be typed. */
  word: string;
  /** What the field is called. */
  label: string;
}

/** Ask before something is done that cannot be undone, and have a word typed that one has to read. */
export function TypedConfirm({ word, label, children, ...confirm }: TypedConfirmProps) {
  const [typed, setTyped] = useState("");
  const [wasOpen, setWasOpen] = useState(confirm.isOpen);
  // Each time anew: what was typed for something else confirms nothing.
  if (wasOpen !== confirm.isOpen) {
    setWasOpen(confirm.isOpen);
    setTyped("");
  }
  return (
    <Confirm {...confirm} canConfirm={typed.trim() === word}>
      {children}
      <TextInput
        label={label}
        classNames={{ input: classes.input ?? "" }}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        value={typed}
        onChange={(event) => {
          setTyped(event.currentTarget.value);
        }}
      />
    </Confirm>
  );
}
