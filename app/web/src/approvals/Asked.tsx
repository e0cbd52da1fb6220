import type { Approval } from "../api/approvals";
import { Questions } from "../questions/Questions";
import { ApprovalCard } from "./ApprovalCard";
import { isOpen } from "./pending";

interface AskedProps {
  approval: Approval;
  isAwaited?: boolean;
}

/** Something that waits for the person: a call to be let happen, or what its server wants to know. */
export function Asked({ approval, isAwaited = false }: AskedProps) {
  return approval.kind === "elicitation" && isOpen(approval) ? (
    <Questions approval={approval} />
  ) : (
    <ApprovalCard approval={approval} isAwaited={isAwaited} />
  );
}

/** All that a run asks before it goes on, each thing decided by itself. */
export function AllAsked({ pending }: { pending: readonly Approval[] }) {
  return pending.map((approval) => (
    <Asked key={approval.approval_id} approval={approval} isAwaited />
  ));
}
