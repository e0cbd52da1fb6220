import { Button, Stack, Text, Title } from "@mantine/core";

import classes from "./Notice.module.css";

interface NoticeProps {
  title: string;
  text: string;
  action: string;
  onAction: () => void;
}

/** A page that says one thing and offers one way on. */
export function Notice({ title, text, action, onAction }: NoticeProps) {
  return (
    <main className={classes.page}>
      <Stack gap="md" align="center" role="alert">
        <Title order={1} size="h2" ta="center">
          {title}
        </Title>
        <Text c="dimmed" ta="center" maw={420}>
          {text}
        </Text>
        <Button onClick={onAction}>
          {action}
        </Button>
      </Stack>
    </main>
  );
}
