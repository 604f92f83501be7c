// Spoolship for Node.js: writes events into the spool, whether or not the agent runs. One file, no dependencies, Node.js 18.
//
//   import { Client } from "./spoolship.mjs";
//   const client = new Client("/var/spool/spoolship/shop");
//   client.track("Video clicked", { Category: "Music" }, { critical: true });
//   client.close();
//
// It promises that an event is in the spool, whole, once, when `track` has returned; with `durable` it survives a power cut as well.
// A worker thread makes a client of its own. What is not accepted throws `Refused`.
import * as fs from "node:fs";
import { connect } from "node:net";
import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const countries = new Set(`
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ
CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO
FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE
JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO
MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW
PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM
TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
`.trim().split(/\s+/));

/** The agent accepts no such event now: keep it and try later. The message says why. */
export class Refused extends Error {}

/** How a dispatch ended: `result` is good, no_data or error; `confirmedBy` destinations, queue or spool; `reason` is for a person. */
export class Report {
  constructor(result, confirmedBy, reason = "") {
    Object.assign(this, { result, confirmedBy, reason });
  }
}

/**
 * Writes lines into a file of this process in `directory`, the app's own or the drop box. Options: `name`, the beginning of the files' names;
 * `durable`, whether each write is synced; `controlSocket`, by which `dispatch` learns what destinations acknowledged (null: it ends at the
 * agent's queue); `manualSessions`, whether `startSession` alone begins sessions; `fileSize`, when the next file begins, in bytes.
 */
export class Client {
  #directory; #name; #stem; #durable; #socket; #manual; #fileSize; #switch;
  #file = null; #path = ""; #size = 0; #number = 0; #held = [];
  #paused = false; #closed = false; #enabled = true; #session = null; #country = null;

  constructor(directory, { name = "app", durable = true, controlSocket = "/run/spoolship/control.sock", manualSessions = false,
    fileSize = 16 << 20 } = {}) {
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) throw new RangeError(`the name "${name}" must be letters, digits, - and _`);
    if (!fs.statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
      throw new Error(`there is no directory ${directory}; create it with: spoolship app add NAME --user U`);
    }
    this.#directory = directory;
    this.#name = name;
    this.#stem = `${name}-${process.pid}-${randomBytes(6).toString("hex")}`;
    this.#durable = durable;
    this.#socket = controlSocket;
    this.#manual = manualSessions;
    this.#fileSize = fileSize;
    // Hidden from the agent. Its owner tells: in a drop box anybody may make a file of that name.
    this.#switch = `${directory}/.${name}-${process.geteuid()}.disabled`;
    this.#enabled = fs.lstatSync(this.#switch, { throwIfNoEntry: false })?.uid !== process.geteuid();
    this.#adoptLeftovers();
  }

  // Events

  /** Tracks an event. Properties are strings, booleans, finite numbers, BigInts of 64 bits and Dates. */
  track(name, properties = null, { critical = false } = {}) {
    if (typeof name !== "string" || name === "") throw new TypeError("an event needs a name");
    const members = [["name", quote(name)], ...this.#common(critical)];
    const written = Object.entries(properties ?? {}).map(([key, value]) => `${quote(key)}:${property(key, value)}`);
    if (written.length) members.push(["properties", `{${written.join(",")}}`]);
    this.#write(members, critical);
  }

  /** `track` under its long name. */
  trackEvent(...words) { this.track(...words); }

  /** Pushes names and values into the data layer of the app's containers. With `event`, tags that call functions fire. */
  push(members) {
    const entries = Object.entries(members);
    if (!entries.length || "type" in members) throw new TypeError("a push needs names and values; the name type is taken");
    this.#write([["type", '"data_layer"'], ...entries.map(([key, value]) => [key, JSON.stringify(value) ?? "null"])], false);
  }

  #common(critical) {
    const members = [["timestamp", quote(new Date().toISOString())]];
    if (critical) members.push(["priority", '"critical"']);
    // Null: of no session, and the agent adds none.
    if (this.#manual) members.push(["session_id", this.#session ? quote(this.#session) : "null"]);
    if (this.#country) members.push(["country", quote(this.#country)]);
    members.push(["pid", String(process.pid)]);
    return members;
  }

  #write(members, critical) {
    if (this.#closed) throw new Error("the client is closed");
    if (!this.#enabled) return false;
    const { accepting, reason } = this.accepting();
    if (accepting === "none" || (accepting === "critical" && !critical)) {
      throw new Refused(reason || `the agent accepts ${accepting}`);
    }
    const line = Buffer.from(`{${members.map(([key, text]) => `${quote(key)}:${text}`).join(",")}}\n`);
    if (this.#file !== null && (this.#size >= this.#fileSize || fs.fstatSync(this.#file).nlink === 0)) this.#finish();
    if (this.#file === null) this.#begin();
    try {
      for (let written = 0; written < line.length;) written += fs.writeSync(this.#file, line, written);
      if (this.#durable) fs.fdatasyncSync(this.#file);
    } catch (error) {
      fs.ftruncateSync(this.#file, this.#size); // Half a line would spoil the next one.
      throw error;
    }
    this.#size += line.length;
    return true;
  }

  /** What the agent accepts now: all, critical or none, and why not all. It needs no agent. */
  accepting() {
    for (let level = 0; level < 17; level += 1) {
      const above = this.#directory + "/..".repeat(level);
      let lines;
      try {
        if (fs.statSync(above).mode & 0o002) continue; // Where anybody may write, the agent says nothing.
        lines = fs.readFileSync(`${above}/.spoolship/state`, "utf8").split("\n");
      } catch {
        continue; // The state is further up, or nowhere.
      }
      const accepting = ["critical", "none"].includes(lines[0]) ? lines[0] : "all";
      return { accepting, reason: accepting === "all" ? "" : lines[1] ?? "" };
    }
    return { accepting: "all", reason: "" };
  }

  // Files

  #begin() {
    this.#number += 1;
    const path = `${this.#directory}/${this.#stem}-${this.#number}.jsonl${this.#paused ? ".part" : ""}`;
    const { O_WRONLY, O_CREAT, O_EXCL, O_APPEND } = fs.constants;
    this.#file = fs.openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0o640);
    fs.fchmodSync(this.#file, 0o640); // The agent reads as the directory's group, whatever the umask is.
    this.#path = path;
    this.#size = 0;
    if (this.#paused) this.#held.push(path);
    this.#syncDirectory();
  }

  /** Ends the file. Under a rotated name the agent removes it once it is read; what is kept back keeps its name. */
  #finish() {
    if (this.#file === null) return;
    fs.closeSync(this.#file);
    this.#file = null;
    if (!this.#path.endsWith(".part")) rename(this.#path, `${this.#path}.1`);
  }

  #release() {
    this.#finish();
    while (this.#held.length) {
      const path = this.#held.at(-1);
      rename(path, `${path.slice(0, -".part".length)}.1`);
      this.#held.pop();
    }
    this.#syncDirectory();
  }

  #syncDirectory() {
    if (!this.#durable) return;
    let folder;
    try {
      folder = fs.openSync(this.#directory, "r");
    } catch (error) {
      if (error.code !== "EACCES") throw error;
      return; // The drop box lets nobody open it; its entries are the agent's care.
    }
    try {
      fs.fsyncSync(folder);
    } finally {
      fs.closeSync(folder);
    }
  }

  /** Gives the agent the files of processes of this name that have ended. */
  #adoptLeftovers() {
    const pattern = new RegExp(`^${this.#name}-(\\d+)-[0-9a-z]+-\\d+\\.jsonl(\\.part)?$`);
    for (const entry of list(this.#directory) ?? []) {
      const found = pattern.exec(entry);
      if (!found || isAlive(Number(found[1]))) continue;
      const path = `${this.#directory}/${entry}`;
      rename(path, `${found[2] ? path.slice(0, -".part".length) : path}.1`);
    }
  }

  /** Returns when all that was tracked before is in the spool: at once, because `track` writes. */
  flush() {
    if (this.#file !== null && this.#durable) fs.fdatasyncSync(this.#file);
  }

  /** Ends the client; what a pause kept back is released. */
  close() {
    if (this.#closed) return;
    this.#release();
    this.#paused = false;
    this.#closed = true;
  }

  // Switches

  /** Whether events are taken. False outlives the process, for this name and user in this directory. */
  get isEnabled() { return this.#enabled; }

  set isEnabled(wanted) {
    const { O_WRONLY, O_CREAT, O_NOFOLLOW } = fs.constants;
    if (wanted) fs.rmSync(this.#switch, { force: true });
    else fs.closeSync(fs.openSync(this.#switch, O_WRONLY | O_CREAT | O_NOFOLLOW, 0o640));
    this.#syncDirectory();
    this.#enabled = Boolean(wanted);
  }

  /** Keeps events back from now on, in files that the agent does not read. */
  pause() {
    if (this.#paused) return;
    this.#finish();
    this.#paused = true;
  }

  /** Releases what was kept back. Without a pause nothing happens. */
  resume() {
    if (!this.#paused) return;
    this.#release();
    this.#paused = false;
  }

  /** Whether events are kept back. */
  get isPaused() { return this.#paused; }

  /** Sets the country of later events: two letters by ISO 3166-1, either case; null for none. */
  setCountryCode(code) {
    const checked = code === null ? null : String(code).toUpperCase();
    // Two letters as they are: in capitals "ß" would be South Sudan.
    if (code !== null && (String(code).length !== 2 || !countries.has(checked))) {
      throw new RangeError(`"${code}" is not a country code by ISO 3166-1; write two letters, such as IT`);
    }
    this.#country = checked;
  }

  /** Begins a session; false, and nothing is done, unless sessions are manual or while disabled. */
  startSession() {
    if (!this.#manual) return false;
    const before = this.#session;
    this.#session = randomUUID();
    let isWritten = false;
    try {
      isWritten = this.#write([["type", '"start_session"'], ["name", '"start_session"'], ...this.#common(false)], false);
    } finally {
      if (!isWritten) this.#session = before;
    }
    return isWritten;
  }

  // Dispatch

  /**
   * Has what was tracked before sent now; resolves with a Report. It waits until the agent has queued the events, then asks it over the control
   * socket to send all that waits. An app that may not use the socket learns no more than that they are queued.
   */
  async dispatch({ timeout = 30_000 } = {}) {
    const deadline = performance.now() + timeout;
    if (this.#paused) return new Report("no_data", "spool", "paused");
    try {
      this.#finish();
    } catch (error) {
      return new Report("error", "spool", error.message);
    }
    const given = this.#unread();
    for (let left = given; left; left = this.#unread()) {
      if (performance.now() >= deadline) {
        return new Report("error", "spool", `files of this client that the agent has not read in time: ${left}; does it run?`);
      }
      await sleep(10);
    }
    if (this.#socket) {
      try {
        return report(await ask(this.#socket, "POST", "/v1/dispatch", '{"wait":true}', deadline - performance.now()));
      } catch (error) {
        // This app may not ask: the queue is as far as it sees.
        if (!["ENOENT", "EACCES", "ECONNREFUSED"].includes(error.code)) {
          return new Report("error", "queue", `${this.#socket}: ${error.message}`);
        }
      }
    }
    if (given === null) return new Report("good", "spool");
    return given ? new Report("good", "queue") : new Report("no_data", "queue", "empty");
  }

  /** How many files of this client the agent has not removed yet; null where the directory cannot be listed. */
  #unread() {
    const names = list(this.#directory);
    return names && names.filter((entry) => entry.includes(`${this.#stem}-`) && !entry.endsWith(".part")).length;
  }
}

/** The values of the agent's containers, from the file that it publishes. A missing key gives "", 0 or false. */
export class Values {
  #path; #mark = ""; #values = {};

  constructor(path = "/run/spoolship/values.json") { this.#path = path; }

  #value(key) {
    try {
      const { ino, size, mtimeNs } = fs.statSync(this.#path, { bigint: true });
      const mark = `${ino} ${size} ${mtimeNs}`;
      if (mark !== this.#mark) {
        const { values } = JSON.parse(fs.readFileSync(this.#path, "utf8"));
        if (values && typeof values === "object") {
          this.#values = values;
          this.#mark = mark;
        }
      }
    } catch {
      // The last values that could be read stay.
    }
    return Object.hasOwn(this.#values, key) ? this.#values[key] : null;
  }

  contains(key) { return this.#value(key) !== null; }

  string(key) {
    const value = this.#value(key);
    return ["string", "number", "boolean"].includes(typeof value) ? String(value) : "";
  }

  /** The whole number of a key. JavaScript is exact to 2^53: what is larger counts as missing. */
  integer(key) {
    const value = this.double(key);
    return Number.isSafeInteger(value) ? value : 0;
  }

  double(key) {
    const value = this.#value(key);
    if (typeof value === "number") return value;
    const isNumber = typeof value === "string" && /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/.test(value);
    return isNumber && Number.isFinite(Number(value)) ? Number(value) : 0;
  }

  boolean(key) {
    const value = this.#value(key);
    return value === true || value === "true";
  }
}

/** No agent answers at the control socket, or this user may not use it. The message says why. */
export class AgentUnavailable extends Error {}

/**
 * A container of the agent, over its control socket: values, evaluated when asked for, and functions of this program. `id` is the container's,
 * such as GTM-1234; `app` is whose tags call functions here, null for none; `timeout` is that of one request, in milliseconds. Getters reject with
 * AgentUnavailable if no agent answers or this user may not ask, and with a RangeError for an unknown container.
 */
export class Container {
  #socket; #timeout; #macros = new Map(); #tags = new Map();
  #connection = null; #open = new Set(); #timer = null; #since = null; #pause = 100;
  #problem = null; #told; #observer = null; #unhandled = 0; #isPlanned = false;

  constructor(id, { app = null, controlSocket = "/run/spoolship/control.sock", timeout = 10_000 } = {}) {
    this.id = id;
    this.app = app;
    this.#socket = controlSocket;
    this.#timeout = timeout;
  }

  // Values

  string(key) { return this.#value(key, "string", ""); }

  /** The whole number of a key. JavaScript is exact to 2^53: what is larger counts as missing. */
  async integer(key) {
    const value = await this.#value(key, "integer", 0);
    return Number.isSafeInteger(value) ? value : 0;
  }

  double(key) { return this.#value(key, "double", 0); }

  boolean(key) { return this.#value(key, "boolean", false); }

  /** The agent names the calls that the value needs, and is asked again with their answers; it remembers nothing in between. */
  async #value(key, type, standard) {
    const macros = new Map(this.#macros);
    const answers = {};
    for (;;) {
      const question = { key, type, container: this.id, functions: [...macros.keys()].sort(), answers };
      let answer;
      try {
        answer = await ask(this.#socket, "POST", "/v1/values", JSON.stringify(question), this.#timeout);
        if (answer.status === 200) answer.found = object(answer.body);
      } catch (error) {
        throw new AgentUnavailable(`${this.#socket}: ${error.message}`);
      }
      if (answer.status !== 200) throw refusal(answer);
      const { calls, value } = answer.found;
      if (!calls?.length) return value ?? standard;
      for (const call of calls) {
        const handler = macros.get(call.function);
        if (!handler || Object.hasOwn(answers, call.id) || Object.keys(answers).length >= 32) {
          throw new AgentUnavailable("the agent asks again, too often, or for a function that was not registered");
        }
        answers[call.id] = (await handler(call.function, call.parameters)) ?? null;
      }
    }
  }

  // Functions

  /**
   * Registers the function of `function_call` macros with `"by": "app"`: handler(name, parameters) returns the value, or a promise of it; null
   * leaves it to the macro's default. It is called by the getters. Null instead of a handler ends that.
   */
  registerMacro(name, handler) {
    if (handler) this.#macros.set(name, handler);
    else this.#macros.delete(name);
  }

  /**
   * Registers the function of `function` tags with `"by": "app"`: handler(name, parameters). Null ends that.
   *
   * It is called once an event or a push of this app is in the agent's queue and the tag fires, each call at most once. Calls while this process
   * does not listen, or reads too slowly, are lost, and the agent counts them. While it listens the process does not end by itself: `close`.
   */
  registerTag(name, handler) {
    if (this.app === null) throw new TypeError("name the app: new Container(id, { app })");
    const isNew = this.#tags.has(name) !== Boolean(handler);
    if (handler) this.#tags.set(name, handler);
    else this.#tags.delete(name);
    if (!isNew || this.#isPlanned) return;
    // One connection for all functions of a turn: the agent has room for 16 on the machine. After `close` there are none, and none begins.
    this.#isPlanned = true;
    queueMicrotask(() => {
      this.#isPlanned = false;
      this.#begin();
    });
  }

  /**
   * Calls observer(null) when the agent gives calls, and observer(why) when it does not: each time that this changes. It is tried again after a
   * tenth of a second, then after twice as long each time, 30 seconds at most, until a connection has lasted a second.
   */
  observeListening(observer) { this.#observer = observer; }

  /** Whether the agent gives this process calls of tags now. */
  get isListening() { return this.#since !== null && !this.#isPlanned; }

  /** Why it gives none, as far as it was tried: an Error; null while it gives calls. */
  get listeningProblem() { return this.#problem; }

  /** Calls that came for a function that was removed meanwhile. */
  get unhandledCalls() { return this.#unhandled; }

  /** Ends the calls of macros and tags. */
  close() {
    this.#macros.clear();
    this.#tags.clear();
    this.#begin();
  }

  /**
   * Connects for the functions of now. The connection before is read on until this one is confirmed, and then until it is silent: of its calls only
   * one that the agent writes at the very moment of its end is lost.
   */
  #begin() {
    clearTimeout(this.#timer);
    let before = this.#connection;
    this.#connection = null;
    this.#disconnected();
    if (!this.#tags.size) {
      for (const each of this.#open) each.destroy();
      return;
    }
    const replace = () => {
      if (before && !before.destroyed) retire(before);
      before = null;
    };
    const body = JSON.stringify({ app: this.app, container: this.id, functions: [...this.#tags.keys()].sort() });
    const connection = connect(this.#socket);
    this.#connection = connection;
    this.#open.add(connection);
    let [waiting, head, problem] = ["", null, null];
    connection.setEncoding("utf8");
    connection.setTimeout(10_000, () => connection.destroy(new Error("the agent took too long to answer")));
    connection.on("connect", () => connection.write(
      `POST /v1/function-calls HTTP/1.0\r\nHost: localhost\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`));
    connection.on("error", (error) => { problem = new AgentUnavailable(`${this.#socket}: ${error.message}`); });
    connection.on("data", (piece) => {
      waiting += piece;
      if (waiting.length > 1 << 19) return connection.destroy(new Error("the answer is longer than a call can be"));
      if (head === null) {
        const end = waiting.indexOf("\r\n\r\n");
        if (end < 0) return;
        head = waiting.slice(0, end);
        waiting = waiting.slice(end + 4);
        if (!head.startsWith("HTTP/")) return connection.destroy(new Error("the answer is not HTTP"));
      }
      if (head.split(" ", 2)[1] !== "200") return;
      connection.setTimeout(0); // Silence means that there is nothing to say.
      const lines = waiting.split("\n");
      waiting = lines.pop();
      try {
        for (const line of lines) {
          if (this.#take(JSON.parse(line), connection)) replace();
        }
      } catch (error) {
        connection.destroy(error); // Not the agent's words.
      }
    });
    connection.on("close", () => {
      this.#open.delete(connection);
      replace();
      if (connection !== this.#connection) return; // Another one has taken its place.
      const status = head?.startsWith("HTTP/") ? Number(head.split(" ", 2)[1]) : 200;
      if (status !== 200) problem = refusal({ status, body: waiting });
      this.#connection = null;
      this.#disconnected();
      // Before the observer, which may begin or end a connection.
      this.#timer = setTimeout(() => this.#begin(), this.#pause);
      this.#pause = Math.min(this.#pause * 2, 30_000);
      this.#tell(problem ?? new AgentUnavailable("the agent has ended the connection"));
    });
  }

  /** Notes that no calls come. The next wait is short only if they came for a second: what fails at once must not be tried ten times a second. */
  #disconnected() {
    if (this.#since !== null && performance.now() - this.#since >= 1000) this.#pause = 100;
    this.#since = null;
  }

  /** Takes the confirmation, for which it returns true, or a call. */
  #take(message, connection) {
    if (message.listening) {
      if (connection === this.#connection) {
        this.#since = performance.now();
        this.#tell(null);
      }
      return true;
    }
    const handler = this.#tags.get(message.function);
    if (!handler) this.#unhandled += 1;
    else setImmediate(() => call(handler, message.function, message.parameters ?? {}));
    return false;
  }

  #tell(why) {
    this.#problem = why;
    const text = why && why.message;
    if (this.#told === text) return;
    this.#told = text;
    if (this.#observer) call(this.#observer, why);
  }
}

/** Calls a handler or an observer. Its mistake, or its promise's, is a warning of the process, and must not end the calls of the others. */
async function call(handler, ...words) {
  try {
    await handler(...words);
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error));
  }
}

/**
 * Ends a connection that another one has replaced, once it brought nothing for a second, or after ten. It looks after the sockets were read: while
 * the program was busy, calls may have come.
 */
function retire(connection) {
  let [seen, seconds] = [connection.bytesRead, 0];
  const timer = setInterval(() => setImmediate(() => {
    seconds += 1;
    if (connection.bytesRead === seen || seconds >= 10) connection.destroy();
    seen = connection.bytesRead;
  }), 1000);
  connection.on("close", () => clearInterval(timer));
}

/** The object that a body is. */
function object(body) {
  const found = JSON.parse(body);
  if (found === null || typeof found !== "object" || Array.isArray(found)) throw new Error("the answer is no object");
  return found;
}

function refusal({ status, body }) {
  let message = `the agent answered with ${status}`;
  try {
    message = JSON.parse(body).error.message ?? message;
  } catch {
    // It gave no reason.
  }
  return [400, 404, 413].includes(status) ? new RangeError(message) : new AgentUnavailable(message);
}

/** A text as JSON; half a surrogate pair, which UTF-8 does not have, becomes U+FFFD. */
function quote(text) {
  return JSON.stringify(Buffer.from(text, "utf8").toString("utf8"));
}

function property(key, value) {
  if (typeof value === "string") return quote(value);
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number" && Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value === "bigint" && BigInt.asIntN(64, value) === value) return String(value);
  if (value instanceof Date && !Number.isNaN(value.getTime())) return quote(value.toISOString());
  throw new TypeError(`the property "${key}" is none that JSON has; write a string, boolean, finite number, BigInt or Date`);
}

function rename(from, to) {
  try {
    fs.renameSync(from, to);
  } catch (error) {
    if (error.code !== "ENOENT") throw error; // The agent, or another process of this name, was quicker.
  }
}

function list(directory) {
  try {
    return fs.readdirSync(directory);
  } catch (error) {
    if (error.code !== "EACCES") throw error;
    return null;
  }
}

function isAlive(id) {
  try {
    process.kill(id, 0);
  } catch (error) {
    return error.code !== "ESRCH";
  }
  return true;
}

/** One request over the control socket by HTTP/1.0. */
function ask(path, method, target, body, timeout) {
  return new Promise((resolve, reject) => {
    const pieces = [];
    const connection = connect(path);
    const timer = setTimeout(() => connection.destroy(new Error("the agent took too long to answer")), Math.max(1, timeout));
    connection.on("connect", () => connection.write(
      `${method} ${target} HTTP/1.0\r\nHost: localhost\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`));
    connection.on("data", (piece) => {
      pieces.push(piece);
      // Another program's socket must not fill the memory.
      if (connection.bytesRead > 8 << 20) connection.destroy(new Error("the answer is longer than 8 MiB"));
    });
    connection.on("error", reject);
    connection.on("close", () => {
      clearTimeout(timer);
      const answer = Buffer.concat(pieces).toString("utf8");
      const end = answer.indexOf("\r\n\r\n");
      if (end < 0 || !answer.startsWith("HTTP/")) return reject(new Error("the answer is not HTTP"));
      resolve({ status: Number(answer.split(" ", 2)[1]), body: answer.slice(end + 4) });
    });
  });
}

function report({ status, body }) {
  if (status !== 200) return new Report("error", "queue", `the agent refused to dispatch: ${status}`);
  const reports = body.split("\n").filter(Boolean).map((line) => JSON.parse(line)).filter((entry) => "outcome" in entry);
  const result = ["error", "good"].find((word) => reports.some((entry) => entry.outcome === word)) ?? "no_data";
  const reasons = reports.filter((entry) => entry.reason).map((entry) => `${entry.destination}: ${entry.reason}`);
  return new Report(result, "destinations", reasons.join(", "));
}
