/** Any program that can sign: `{ goal, name?, workspace?, thread?, abort?, id? }`, with OpenLoom's names as well. */
import { judge, SIGNATURE_HEADER } from "../../notify/signature.ts";
import { header, ignored, table, words, type Parser } from "./source.ts";

export const generic: Parser = {
  isSigned: (inbound, secret, now) => judge(header(inbound, SIGNATURE_HEADER), inbound.body, secret, now) === "good",
  parse(inbound) {
    const given = table(JSON.parse(inbound.body.toString("utf8")));
    const goal = words(given["goal"]) ?? words(given["text"]) ?? words(given["prompt"]);
    if (goal === undefined) return ignored("there is no goal in it");
    const name = words(given["name"]) ?? words(given["title"]);
    const workspace = words(given["workspace"]) ?? words(given["cwd"]);
    const thread = words(given["thread"]) ?? words(given["session_id"]) ?? words(given["sessionId"]);
    // A signature includes its time: the same one again is the same request.
    const id = words(given["id"]) ?? header(inbound, SIGNATURE_HEADER);
    return {
      kind: "order",
      fields: {
        goal,
        ...(name === undefined ? {} : { name }),
        ...(workspace === undefined ? {} : { workspace }),
        ...(thread === undefined ? {} : { thread }),
        ...(given["abort"] === true ? { abort: true } : {}),
      },
      ...(id === undefined ? {} : { id }),
    };
  },
};
