import classes from "./Meter.module.css";

interface MeterProps {
  /** The sentence that says the same. */
  text: string;
  /** What fills it, one part after the other, each from 0 to 1. */
  parts: { part: number; look: "free" | "near" | "reached" | "others" }[];
}

/** How much of something is used, as a bar. */
export function Meter({ text, parts }: MeterProps) {
  const percent = Math.round(parts.reduce((sum, { part }) => sum + part, 0) * 100);
  return (
    <div
      className={classes.meter}
      role="meter"
      aria-label={text}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent}
      aria-valuetext={text}
    >
      {parts.map(({ part, look }) => (
        <div
          key={look}
          className={classes.part}
          data-look={look}
          style={{ width: `${part * 100}%` }}
        />
      ))}
    </div>
  );
}
