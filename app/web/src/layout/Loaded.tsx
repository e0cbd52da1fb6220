import { Alert, Button, Center, Loader } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";

interface LoadedProps<Data> {
  query: {
    data: Data | undefined;
    isLoadingError: boolean;
    refetch: () => Promise<unknown>;
  };
  /** What is said while it is not there yet. */
  loading: string;
  /** What is said where it could not be had. */
  failed: string;
  children: (data: Data) => ReactNode;
}

/** What was asked for once it is there, and until then that it is coming or that it is not. */
export function Loaded<Data>({ query, loading, failed, children }: LoadedProps<Data>) {
  const { t } = useTranslation();
  const { data, isLoadingError, refetch } = query;
  if (data !== undefined) return children(data);
  if (isLoadingError) {
    return (
      <Alert color="red" title={failed}>
        <Button variant="default" onClick={() => void refetch()}>
          {t("failure.retry")}
        </Button>
      </Alert>
    );
  }
  return (
    <Center>
      <Loader role="status" aria-label={loading} />
    </Center>
  );
}
