import { useMutation, useQueryClient } from "@tanstack/react-query";

import { type Approval, type Deciding, decideApproval } from "../api/approvals";
import { type Problem, toProblem } from "../api/problem";
import { refreshThread } from "../chat/threadQueries";
import { THREADS_KEY } from "../threads/useThreads";
import { APPROVALS_KEY, keepApproval } from "./approvalCache";
import { noteFailed, noteLate, noteSent } from "./elsewhere";

/** Nobody can say whether it arrived. */
function isUnheard({ status }: Problem): boolean {
  return status === 0 || status >= 500;
}

/**
 * Decide on something that is asked.
 *
 * One that was decided already is shown as it stands. The run's stream is then read like that of any
 * run that is listed, in this tab as in every other.
 */
export function useDecide({ approval_id: id, thread_id: threadId }: Approval, onDone?: () => void) {
  const queries = useQueryClient();
  const deciding = useMutation({
    mutationFn: (decision: Deciding) => decideApproval(id, decision),
    onMutate: ({ decision }) => {
      noteSent(id, decision);
    },
    onSuccess: ({ approval, isLate }) => {
      if (isLate) noteLate(approval);
      keepApproval(queries, approval);
      onDone?.();
    },
    onError: (error) => {
      noteFailed(id, isUnheard(toProblem(error)));
    },
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: APPROVALS_KEY });
      void queries.invalidateQueries({ queryKey: THREADS_KEY });
      void refreshThread(queries, threadId, "runs");
    },
  });
  return {
    decide: (decision: Deciding) => {
      deciding.mutate(decision);
    },
    isSending: deciding.isPending,
    problem: deciding.isError ? toProblem(deciding.error) : null,
  };
}

export type Decide = ReturnType<typeof useDecide>;
