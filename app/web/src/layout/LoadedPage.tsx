import { Button, Center, Loader, Stack, Text, Title } from "@mantine/core";
import { Component, type ReactNode, Suspense } from "react";
import { useTranslation } from "react-i18next";

function NotLoaded() {
  const { t } = useTranslation();
  return (
    <Center flex={1} p="lg">
      <Stack align="center" gap="sm" role="alert">
        <Title order={1} size="h2" ta="center">
          {t("page.failedTitle")}
        </Title>
        <Text c="dimmed" ta="center">
          {t("page.failedText")}
        </Text>
        <Button
          onClick={() => {
            window.location.reload();
          }}
        >
          {t("page.reload")}
        </Button>
      </Stack>
    </Center>
  );
}

class Boundary extends Component<{ children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError(): { hasFailed: boolean } {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    return this.state.hasFailed ? <NotLoaded /> : this.props.children;
  }
}

/** A page whose code is fetched when it is opened: a chat does not pay for it. */
export function LoadedPage({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const loading = (
    <Center flex={1}>
      <Loader role="status" aria-label={t("page.loading")} />
    </Center>
  );
  return (
    <Boundary>
      <Suspense fallback={loading}>{children}</Suspense>
    </Boundary>
  );
}
