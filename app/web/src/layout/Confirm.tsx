import { Alert, Button, Group, Modal, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

interface ConfirmProps {
  isOpen: boolean;
  title: string;
  confirm: string;
  cancel: string;
  /** Why it did not work, where it was tried. */
  failure: string | null;
  isPending: boolean;
  canConfirm?: boolean;
  onConfirm: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** Ask before something is done that cannot be undone. */
export function Confirm(props: ConfirmProps) {
  const { title, confirm, cancel, failure, isPending, canConfirm = true, children } = props;
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.onClose}
      title={<Text fw={600}>{title}</Text>}
      closeButtonProps={{ "aria-label": cancel, size: 44, iconSize: 20 }}
      lockScroll={false}
      // The text would change while the dialog fades.
      transitionProps={{ duration: 0 }}
      centered
    >
      <Stack>
        {children}
        {failure !== null && <Alert color="red">{failure}</Alert>}
        <Group justify="flex-end">
          <Button variant="default" onClick={props.onClose} data-autofocus>
            {cancel}
          </Button>
          <Button color="red" loading={isPending} disabled={!canConfirm} onClick={props.onConfirm}>
            {confirm}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
