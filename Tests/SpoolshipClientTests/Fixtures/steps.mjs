// What the tests have the Node.js module do: steps.mjs MODULE STEP ARGUMENTS...
import assert from "node:assert";
import { readdirSync } from "node:fs";

const [, , module, step, directory, ...words] = process.argv;
const { Client, Refused, Values } = await import(module);

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
    console.log((await writer.dispatch()).result, (await writer.dispatch()).result);
    writer.close();
  },
  values() {
    const values = new Values(directory);
    for (const key of ["text", "number", "whole", "part", "flag"]) {
      console.log([values.string(key), values.integer(key), values.double(key), values.boolean(key)].join(":"));
    }
  },
};
await steps[step]();
