import {
  IconAt,
  IconCpu,
  IconFileText,
  IconMessage,
  IconNotes,
  IconPrompt,
  IconTool,
} from "@tabler/icons-react";

const ICONS: Partial<Record<string, typeof IconAt>> = {
  thread: IconMessage,
  memory: IconNotes,
  resource: IconFileText,
  prompt: IconPrompt,
  tool: IconTool,
  model: IconCpu,
};

/** What kind of thing is mentioned, for the eye. */
export function MentionIcon({ kind }: { kind: string }) {
  const Icon = ICONS[kind] ?? IconAt;
  return <Icon size={16} aria-hidden />;
}
