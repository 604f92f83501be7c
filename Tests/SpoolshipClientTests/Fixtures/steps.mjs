// What the tests have the Node.js module do: steps.mjs MODULE STEP ARGUMENTS...
import assert from "node:assert";
import { readdirSync } from "node:fs";
import { createServer } from "node:net";

const [, , module, step, directory, ...words] = process.argv;
const { AgentUnavailable, Client, Container, Refused, Values } = await import(module);

const client = (options = {}) => new Client(directory, { controlSocket: `${directory}/nowhere.sock`, ...options });
const hidden = () => readdirSync(directory).filter((name) => name.endsWith(".part")).length;

function attempt(body) {
  try {
    body();
    console.log("ok");
  } catch (error) {
    const isOurs = error instanceof Refused || error instanceof TypeError || error instanceof RangeError;
    if (!isOurs && error.message !== "the client is closed") throw error;
    console.log("refused", error.message);
  }
}

const head = "HTTP/1.1 200 OK\r\n\r\n";
const confirmation = `${head}{"listening": true}\n`;

/** A program at a socket that has a function answer each request: answer(connection, body). */
async function toyAgent(answer) {
  const server = createServer((connection) => {
    let text = "";
    connection.setEncoding("utf8");
    connection.on("error", () => {}); // The module has ended the connection.
    connection.on("data", (piece) => {
      text += piece;
      if (text.endsWith("}")) answer(connection, JSON.parse(text.slice(text.indexOf("{"))));
    });
  });
  const path = `${directory}/s`;
  await new Promise((resolve) => server.listen(path, resolve));
  return { path, close: () => server.close() };
}

const steps = {
  write() {
    const writer = client({ durable: false, fileSize: Number(words[1]) });
    for (let number = 0; number < Number(words[0]); number += 1) writer.track(String(number));
    writer.close();
  },
  features() {
    const writer = client({ manualSessions: true });
    writer.setCountryCode("it");
    writer.track("Video \"clicked\"\n", { text: "é😀\x01", whole: 9007199254740993n, number: 0.1, yes: true,
      time: new Date("2026-11-20T10:00:00.123Z") }, { critical: true });
    assert(writer.startSession());
    writer.setCountryCode(null);
    writer.trackEvent("b");
    writer.push({ event: "openScreen", cart: { items: [1, 2.5, null] } });
    writer.track("c");
    writer.close();
  },
  mistakes() {
    const writer = client();
    for (const wrong of ["XX", "ITA", "", "ß"]) attempt(() => writer.setCountryCode(wrong));
    for (const wrong of [NaN, Infinity, null, [1]]) attempt(() => writer.track("x", { x: wrong }));
    attempt(() => writer.track(""));
    attempt(() => writer.push({}));
    attempt(() => writer.push({ type: "x" }));
    attempt(() => client({ name: "a b" }));
    assert(!writer.startSession());
    writer.close();
    attempt(() => writer.track("late"));
  },
  pause() {
    const writer = client();
    writer.track("before");
    writer.pause();
    writer.pause();
    writer.track("kept");
    // Two of other programs.
    console.log(hidden(), "hidden");
    console.log(writer.isPaused);
    writer.resume();
    writer.track("after");
    console.log(hidden() - 2, "hidden");
    console.log(writer.isPaused);
    writer.pause();
    writer.track("closed");
    writer.close();
  },
  disable() {
    const writer = client();
    console.log(writer.isEnabled);
    writer.track(writer.isEnabled ? "yes" : "no");
    writer.isEnabled = !writer.isEnabled;
    console.log(writer.isEnabled);
    writer.close();
  },
  state() {
    const writer = client();
    attempt(() => writer.track("x"));
    attempt(() => writer.track("x", null, { critical: true }));
  },
  async dispatch() {
    const show = ({ result, confirmedBy }) => console.log(result, confirmedBy);
    const timeout = Number(words[0]) * 1000;
    const writer = client();
    writer.track("x");
    show(await writer.dispatch({ timeout }));
    show(await writer.dispatch({ timeout }));
    writer.pause();
    show(await writer.dispatch({ timeout }));
    writer.close();
  },
  async send() {
    const writer = new Client(directory, { controlSocket: words[0] });
    writer.track("x", { key: words[1] });
    const send = async () => (await writer.dispatch({ timeout: 120_000 })).result;
    console.log(await send(), await send());
    writer.close();
  },
  async functions() {
    const heard = [];
    const told = [];
    // The harness waits for 300 s: no shorter wait may decide.
    const container = new Container("GTM-1234", { app: "default", controlSocket: words[0], timeout: 120_000 });
    const flag = (value) => (value ? "True" : "False");
    const all = [await container.string("greeting"), await container.integer("whole"), await container.double("part")];
    console.log(...all, flag(await container.boolean("flag")));
    container.registerMacro("user", async () => "ann");
    container.registerMacro("greet", (name, { user }) => `${name} ${user}`);
    console.log(await container.string("greeting"));
    container.registerMacro("user", null);
    console.log(await container.string("greeting"));
    for (const [path, id] of [[words[0], "GTM-9"], [`${directory}/nowhere.sock`, "GTM-1234"]]) {
      const error = await new Container(id, { controlSocket: path, timeout: 120_000 }).string("greeting").catch((caught) => caught);
      console.log(error instanceof RangeError ? "ValueError" : error.constructor.name);
    }
    const lost = new Container("GTM-1234", { app: "default", controlSocket: `${directory}/nowhere.sock` });
    await new Promise((resolve) => {
      lost.observeListening((why) => {
        told.push(why.code ?? "FileNotFoundError");
        resolve();
      });
      lost.registerTag("shown", console.log);
    });
    console.log(`['${told.join()}']`, flag(lost.isListening), "FileNotFoundError");
    assert(lost.listeningProblem instanceof AgentUnavailable);
    lost.close();
    let done;
    const all21 = new Promise((resolve) => { done = resolve; });
    const hear = (name, parameters) => {
      heard.push(`${name} ${Object.values(parameters)[0]}`);
      if (heard.length === 21) done();
    };
    const on = new Promise((resolve) => container.observeListening((why) => why ?? resolve()));
    container.registerTag("shown", hear);
    container.registerTag("bought", hear);
    await on;
    while (!container.isListening) await new Promise((resolve) => setTimeout(resolve, 10));
    const writer = client();
    writer.push({ event: "openScreen", screenName: "Home" });
    for (let number = 0; number < 20; number += 1) writer.track("Purchase", { n: number });
    writer.close();
    await all21;
    const wanted = ["shown Home", ...Array.from({ length: 20 }, (_, number) => `bought ${number}`)];
    console.log(flag(heard.sort().join() === wanted.sort().join()));
    container.close();
    console.log(flag(container.isListening));
  },
  async answers() {
    let given;
    const agent = await toyAgent((connection) => connection.end(given));
    const container = new Container("GTM-1234", { controlSocket: agent.path, timeout: 120_000 });
    for (given of ["HTTP/1.1 20", `${head}{"value":`, `${head}null`, `${head}[]`, head + "x".repeat(9 << 20)]) {
      const error = await container.string("greeting").catch((caught) => caught);
      const text = error.message?.includes("longer than") ? "longer" : "unavailable";
      console.log(error instanceof AgentUnavailable ? text : error);
    }
    const writer = new Client(directory, { controlSocket: agent.path });
    const { result, confirmedBy, reason } = await writer.dispatch({ timeout: 120_000 });
    console.log(result, confirmedBy, reason.includes("longer than") ? "longer" : reason);
    writer.close();
    agent.close();
  },
  async bounds() {
    let given;
    const agent = await toyAgent((connection) => connection.write(given));
    for (const begin of ["", confirmation]) {
      given = begin + "x".repeat(1 << 20);
      const container = new Container("GTM-1234", { app: "default", controlSocket: agent.path });
      await new Promise((resolve) => {
        container.observeListening((why) => { if (why?.message.includes("longer than")) resolve(); });
        container.registerTag("f", console.log);
      });
      console.log("longer");
      container.close();
    }
    agent.close();
  },
  async turn() {
    const requests = [];
    let seen = () => {};
    const agent = await toyAgent((connection, { functions }) => {
      requests.push(functions);
      connection.write(confirmation);
      seen();
    });
    const request = (name) => new Promise((resolve) => {
      seen = () => { if (requests.at(-1).includes(name)) resolve(); };
    });
    const open = () => new Container("GTM-1234", { app: "default", controlSocket: agent.path });
    const [container, closed, last] = [open(), open(), open()];
    const isOn = new Promise((resolve) => container.observeListening((why) => why ?? resolve()));
    for (let number = 0; number < 40; number += 1) container.registerTag(`f${number}`, console.log);
    await isOn;
    console.log(container.isListening);
    container.registerTag("f40", console.log);
    console.log(container.isListening); // The connection of now is not for this one.
    await request("f40");
    container.close();
    closed.registerTag("closed", console.log);
    closed.close();
    last.registerTag("last", console.log);
    await request("last");
    last.close();
    // A slow machine may have needed several attempts, but none for some of the functions.
    console.log([...new Set(requests.map((names) => (names.length > 1 ? names.length : names[0])))].join());
    agent.close();
  },
  values() {
    const values = new Values(directory);
    for (const key of ["text", "number", "whole", "part", "flag"]) {
      console.log([values.string(key), values.integer(key), values.double(key), values.boolean(key)].join(":"));
    }
  },
};
await steps[step]();
