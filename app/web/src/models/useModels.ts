import { useQuery } from "@tanstack/react-query";

import { fetchModels } from "../api/models";
import { useModelChoice } from "./modelChoices";
import { resolveModel } from "./resolve";

const FRESH_MS = 60_000;
/** How often to ask while the list cannot be had, which holds nothing up. */
const RETRY_MS = 30_000;

/** The models that may be chosen. */
function useModels() {
  return useQuery({
    queryKey: ["models"],
    queryFn: ({ signal }) => fetchModels(signal),
    staleTime: FRESH_MS,
    retry: 1,
    refetchInterval: ({ state }) => (state.status === "error" ? RETRY_MS : false),
  });
}

/** Which model answers in a chat, out of which ones. */
export function useChosenModel(userId: string, threadId: string | null) {
  const { data: models, isError, refetch } = useModels();
  const chosen = useModelChoice(userId, threadId);
  const isMissing = isError && models === undefined;
  return {
    models: models ?? [],
    chosen,
    /** The list could not be had. */
    isMissing,
    /** Look again at how the models stand. */
    look: () => void refetch(),
    ...resolveModel(models, chosen, isMissing),
  };
}

export type ChosenModel = ReturnType<typeof useChosenModel>;
