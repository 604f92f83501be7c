// Tracks one event: node track.mjs DIRECTORY NAME
import { closeSync, existsSync, fchmodSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";

const [directory, name] = process.argv.slice(2);
// The spool is the nearest directory above in which the agent says what it accepts.
const states = Array.from({ length: 17 }, (_, level) => `${directory}${"/..".repeat(level)}/.spoolship/state`);
const state = states.find((path) => existsSync(path));
if (state && /^(critical|none)$/.test(readFileSync(state, "utf8").split("\n")[0])) process.exit(75);
const id = randomUUID();
const event = { name, timestamp: new Date().toISOString(), id, pid: process.pid, properties: { language: "Node.js", number: 1.5 } };
const hidden = `${directory}/.event-${id}.tmp`;
const file = openSync(hidden, "wx", 0o640);
fchmodSync(file, 0o640); // The agent reads as the group, whatever the umask is.
writeSync(file, JSON.stringify(event));
fsyncSync(file);
closeSync(file);
renameSync(hidden, `${directory}/event-${id}.json`);
try {
  const folder = openSync(directory, "r");
  fsyncSync(folder); // The new name survives a power cut as well.
  closeSync(folder);
} catch (error) {
  if (error.code !== "EACCES") throw error;
  execFileSync("sync", ["-f", `${directory}/event-${id}.json`]); // The drop box incoming/ lets nobody open it.
}
