// Tracks one event: node track.mjs DIRECTORY NAME
import { closeSync, existsSync, fchmodSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";

const [directory, name] = process.argv.slice(2);
// The spool is the nearest directory above in which the agent says what it accepts. Where anybody may write, it says nothing.
const above = Array.from({ length: 17 }, (_, level) => directory + "/..".repeat(level));
const spool = above.find((up) => existsSync(`${up}/.spoolship/state`) && !(statSync(up).mode & 0o002));
const state = spool && `${spool}/.spoolship/state`;
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
  try {
    execFileSync("sync", ["-f", `${directory}/event-${id}.json`], { stdio: "ignore" }); // The drop box incoming/ lets nobody open it.
  } catch (failed) {
    if (existsSync(`${directory}/event-${id}.json`)) throw failed; // What is gone the agent has taken.
  }
}
