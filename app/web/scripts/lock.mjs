/**
 * Keep the lock file free of addresses.
 *
 * `node scripts/lock.mjs` removes what npm writes for people to read (who takes donations);
 * `--check` only says whether any address is left. Where packages come from is the user's own
 * npm configuration.
 */
import { readFileSync, writeFileSync } from "node:fs";

const LOCK = new URL("../package-lock.json", import.meta.url);

function withoutFunding(lock) {
  for (const entry of Object.values(lock.packages)) delete entry.funding;
  return lock;
}

const lock = JSON.parse(readFileSync(LOCK, "utf8"));

if (!process.argv.includes("--check")) {
  writeFileSync(LOCK, `${JSON.stringify(withoutFunding(lock), null, 2)}\n`);
}

const addresses = readFileSync(LOCK, "utf8").match(/\w+:\/\/[^"/]*/g) ?? [];
if (addresses.length > 0) {
  console.error("package-lock.json holds addresses (run `node scripts/lock.mjs`):", new Set(addresses));
  process.exitCode = 1;
}
