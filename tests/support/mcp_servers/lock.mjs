// Takes out of the lock what npm writes for people to read: it holds addresses.
import { readFileSync, writeFileSync } from "node:fs";

const LOCK = new URL("package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(LOCK, "utf8"));
for (const entry of Object.values(lock.packages)) delete entry.funding;
writeFileSync(LOCK, `${JSON.stringify(lock, null, 2)}\n`);
