import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import { kindName } from "./foundMentions";
import { MentionIcon } from "./MentionIcon";
import { type Mention, partsOf, refParts, sentMentions } from "./mentionText";
import classes from "./Mentions.module.css";

function Mentioned({ mention }: { mention: Mention }) {
  const { i18n } = useTranslation();
  const { kind, name } = refParts(mention.ref);
  const look = (
    <>
      <MentionIcon kind={kind} />
      {mention.label}
    </>
  );
  const title = kindName(i18n, kind);
  if (kind !== "thread") {
    return (
      <span className={classes.mention} title={title}>
        {look}
      </span>
    );
  }
  return (
    <Link className={classes.mention} title={title} href={`/chat/${encodeURIComponent(name)}`}>
      {look}
    </Link>
  );
}

/** What a person wrote, with what it mentions. */
export function MentioningText({ text, refs }: { text: string; refs: string[] }) {
  const { t, i18n } = useTranslation();
  if (refs.length === 0) return text;
  const mentions = sentMentions(text, refs);
  if (mentions.length === 0) {
    const kinds = refs.map((ref) => kindName(i18n, refParts(ref).kind));
    const all = new Intl.ListFormat(i18n.language).format(kinds);
    return (
      <>
        {text}
        <span className={classes.sent}>{t("mentions.sent", { kinds: all })}</span>
      </>
    );
  }
  const byLabel = new Map(mentions.map((mention) => [mention.label, mention]));
  return partsOf(text, mentions).map((part, index) => {
    const mention = part.label === undefined ? undefined : byLabel.get(part.label);
    return mention === undefined ? part.text : <Mentioned key={index} mention={mention} />;
  });
}
