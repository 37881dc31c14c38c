// Calls the orchestrator. Every answer is protobuf's JSON of a message of proto/pawl/v1/, the same as `pawl --json`.

import {lost, reached} from "./connection.js";

const TOKEN = "pawl-token";

export class ApiError extends Error {
  constructor(status, body) {
    super(body.message ?? `the orchestrator answered ${status}`);
    this.status = status;
    this.code = body.code ?? "";
    this.fix = body.detail?.fix ?? "";
    this.problems = body.detail?.problems ?? [];
  }
}

export const token = () => sessionStorage.getItem(TOKEN) ?? "";
export const setToken = text => text ? sessionStorage.setItem(TOKEN, text) : sessionStorage.removeItem(TOKEN);

const headers = () => token() ? {Authorization: `Bearer ${token()}`} : {};

async function read(response) {
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new ApiError(response.status, body);
}

async function send(path, options) {
  try {
    const response = await fetch(path, {...options, headers: {...headers(), ...options?.headers}, cache: "no-store"});
    reached();
    return response;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    lost();
    throw new ApiError(0, {message: "the orchestrator does not answer", detail: {fix: "The page loads as soon as it does"}});
  }
}

// parameters: {page_size: 100, metrics: ["a", "b"]}
function query(parameters = {}) {
  const made = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) if (one !== undefined && one !== "") made.append(name, one);
  }
  const text = made.toString();
  return text && `?${text}`;
}

export async function get(path, parameters, signal) {
  return (await read(await send(`/api/${path}${query(parameters)}`, {signal}))).json();
}

export async function getText(path, signal) {
  return (await read(await send(`/api/${path}`, {signal}))).text();
}

export async function getFile(path, parameters) {
  return (await read(await send(`/api/${path}${query(parameters)}`))).blob();
}

export async function post(path, message) {
  const response = await send(`/api/${path}`, {
    method: "POST",
    headers: {"Content-Type": "application/json", "X-Pawl": "1"},
    body: JSON.stringify(message),
  });
  return (await read(response)).json();
}

// All iterations, a thousand at a time; `more` is called with each thousand as it comes.
export async function allIterations(campaign, parameters, signal, more = () => {}) {
  const all = [];
  let page_token = "";
  do {
    const page = await get(`${campaign}/iterations`, {...parameters, page_size: 1000, page_token}, signal);
    all.push(...page.iterations ?? []);
    page_token = page.nextPageToken ?? "";
    more(all);
  } while (page_token);
  return all;
}

// Follows a campaign by server-sent events until it ends or the signal aborts; reconnects where a connection broke. Uses
// fetch because EventSource can't send a token.
export async function follow(campaign, after, signal, {message, state}) {
  let pause = 500;
  while (!signal.aborted) {
    try {
      const response = await read(await send(`/api/${campaign}/events${query({after_sequence: after})}`, {signal}));
      state("live");
      pause = 500;
      for await (const event of eventsOf(response.body)) {
        if (event.type === "end") return state("ended");
        if (event.type === "failed") break;
        if (event.id) after = event.id;
        if (event.type === "message") message(JSON.parse(event.data));
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.status >= 400 && error.status < 500 && error.status !== 429) return state("refused", error);
    }
    if (signal.aborted) return;
    state("waiting");
    await new Promise(resolve => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 10_000);
  }
}

async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      text += value;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const event = {type: "message", id: "", data: ""};
        for (const line of text.slice(0, end).split("\n")) {
          if (line.startsWith("id: ")) event.id = line.slice(4);
          if (line.startsWith("event: ")) event.type = line.slice(7);
          if (line.startsWith("data: ")) event.data += line.slice(6);
        }
        if (event.data) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
