// A model without a model: speaks the Responses API, by server-sent events, and answers each request as a script says.
import {createServer} from "node:http";

// `next` is given the outputs of the tools that the conversation has called so far, oldest first, and answers {tool, arguments} or a text.
export async function startModelServer(next) {
  let responses = 0;
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", piece => (body += piece));
    request.on("end", () => {
      if (!request.url.endsWith("/responses")) {
        response.writeHead(200, {"content-type": "application/json"});
        response.end("{\"data\": [], \"models\": []}");
        return;
      }
      const id = `response_${++responses}`;
      const outputs = JSON.parse(body).input.filter(item => item.type === "function_call_output").map(item => textOf(item.output));
      response.writeHead(200, {"content-type": "text/event-stream"});
      const send = (type, data) => response.write(`event: ${type}\ndata: ${JSON.stringify({type, ...data})}\n\n`);
      send("response.created", {response: {id}});
      send("response.output_item.done", {output_index: 0, item: itemOf(next(outputs), responses)});
      const usage = {input_tokens: 1000, input_tokens_details: {cached_tokens: 0}, output_tokens: 50, output_tokens_details: {reasoning_tokens: 0}, total_tokens: 1050};
      send("response.completed", {response: {id, usage}});
      response.end();
    });
  });
  await new Promise(done => server.listen(0, "127.0.0.1", done));
  return {url: `http://127.0.0.1:${server.address().port}/v1`, stop: () => server.close()};
}

const textOf = output => (typeof output === "string" ? output : output.map(part => part.text ?? "").join(""));

function itemOf(answer, number) {
  if (typeof answer === "string") {
    return {type: "message", role: "assistant", id: `message_${number}`, content: [{type: "output_text", text: answer}]};
  }
  return {type: "function_call", id: `call_${number}`, call_id: `call_${number}`, namespace: "mcp__pawl", name: answer.tool, arguments: JSON.stringify(answer.arguments)};
}

// The structured result that a tool's output holds; null: the tool refused.
export function resultOf(output) {
  const begin = output.indexOf("{");
  try {
    return JSON.parse(output.slice(begin));
  } catch {
    return null;
  }
}
