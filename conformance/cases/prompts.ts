/** Where the prompt comes from, what is attached to it, and where the answer goes. */
import { human, json, say, type ExecCase } from "../exec-case.ts";

const HELLO = [say("Hello.")];
const SCHEMA = JSON.stringify({
  type: "object",
  properties: { answer: { type: "string" } },
  required: ["answer"],
  additionalProperties: false,
});
/** One transparent pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const MAKE_PIXEL = `echo ${PIXEL} | base64 -d > pixel.png`;

export const PROMPT_CASES: readonly ExecCase[] = [
  { id: "hello-json", about: "a prompt, an answer, JSON lines", script: HELLO, runs: [json()] },
  { id: "hello-human", about: "a prompt, an answer, for people", script: HELLO, runs: [human()] },
  {
    id: "hello-experimental-json",
    about: "the old name of --json",
    script: HELLO,
    runs: [{ args: ["exec", "--experimental-json", "do it"] }],
  },
  { id: "color-always", about: "colour stays off stdout", script: HELLO, runs: [human("--color", "always")] },
  {
    id: "lines-and-unicode",
    about: "a final message of several lines beyond ASCII",
    script: [say("první řádek\n\n- 二\n```\nx\n```\n")],
    runs: [human(), json()],
  },
  { id: "empty-answer", about: "the model says nothing at all", script: [say("")], runs: [json(), human()] },
  {
    id: "last-message-json",
    about: "-o with JSON lines",
    script: HELLO,
    runs: [json("-o", "{root}/last.txt")],
    looksAt: ["last.txt"],
  },
  {
    id: "last-message-human",
    about: "-o for people, relative to the current folder",
    script: HELLO,
    runs: [human("--output-last-message", "last.txt")],
    looksAt: ["ws/last.txt"],
  },
  {
    id: "last-message-unwritable",
    about: "-o into a folder that is not there",
    script: HELLO,
    runs: [json("-o", "{root}/no/such/last.txt")],
  },
  {
    id: "last-message-of-failure",
    about: "-o when the turn fails",
    faults: { kind: "status", status: 400 },
    runs: [json("-o", "{root}/last.txt")],
    looksAt: ["last.txt"],
  },
  {
    id: "stdin-prompt",
    about: "no argument, the prompt on standard input",
    script: HELLO,
    runs: [{ args: ["exec", "--json"], stdin: "from stdin\n" }],
  },
  {
    id: "stdin-dash",
    about: "the argument - and the prompt on standard input",
    script: HELLO,
    runs: [{ args: ["exec", "--json", "-"], stdin: "from stdin\n" }],
  },
  {
    id: "stdin-appended",
    about: "an argument and standard input",
    script: HELLO,
    runs: [{ args: ["exec", "--json", "look at this"], stdin: "line one\nline two\n" }],
  },
  {
    id: "stdin-appended-blank",
    about: "an argument and standard input of blanks",
    script: HELLO,
    runs: [{ args: ["exec", "--json", "look at this"], stdin: " \n" }],
  },
  { id: "stdin-empty", about: "no argument and nothing on standard input", runs: [{ args: ["exec", "--json"] }] },
  {
    id: "stdin-dash-blank",
    about: "the argument - and blanks on standard input",
    runs: [{ args: ["exec", "--json", "-"], stdin: " \n" }],
  },
  {
    id: "stdin-open-silent",
    about: "an argument and a standard input that stays open and silent",
    script: HELLO,
    runs: [{ args: ["exec", "--json", "do it"], stdin: { isOpen: true } }],
    deadlineMs: 15_000,
  },
  {
    id: "stdin-not-utf8",
    about: "standard input that is not UTF-8",
    runs: [{ args: ["exec", "--json"], stdin: { bytes: [0x66, 0x6f, 0xff, 0xfe, 0x0a] } }],
  },
  { id: "prompt-empty", about: "an empty argument", script: HELLO, runs: [{ args: ["exec", "--json", ""] }] },
  {
    id: "schema-kept",
    about: "an answer of the schema's shape",
    script: [say('{"answer":"yes"}')],
    files: { "schema.json": SCHEMA },
    runs: [json("--output-schema", "{root}/schema.json")],
  },
  {
    id: "schema-human",
    about: "an answer of the schema's shape, for people and in a file",
    script: [say('{"answer":"yes"}')],
    files: { "schema.json": SCHEMA },
    runs: [human("--output-schema", "{root}/schema.json", "-o", "{root}/last.txt")],
    looksAt: ["last.txt"],
  },
  {
    id: "schema-broken",
    about: "an answer that is not of the schema's shape, twice",
    script: [say("no JSON at all"), say("still none")],
    files: { "schema.json": SCHEMA },
    runs: [json("--output-schema", "{root}/schema.json")],
  },
  {
    id: "schema-missing",
    about: "a schema file that is not there",
    runs: [json("--output-schema", "{root}/none.json")],
  },
  {
    id: "schema-not-json",
    about: "a schema file that is not JSON",
    files: { "schema.json": "{" },
    runs: [json("--output-schema", "{root}/schema.json")],
  },
  {
    id: "image",
    about: "an image with the prompt",
    script: HELLO,
    setUp: MAKE_PIXEL,
    runs: [{ args: ["exec", "--json", "do it", "-i", "pixel.png"] }],
  },
  {
    id: "images-two",
    about: "two images, one flag each",
    script: HELLO,
    setUp: MAKE_PIXEL,
    runs: [{ args: ["exec", "--json", "--image", "pixel.png", "--image", "{ws}/pixel.png", "--", "do it"] }],
  },
  {
    id: "images-list",
    about: "two images in one flag",
    script: HELLO,
    setUp: MAKE_PIXEL,
    runs: [{ args: ["exec", "--json", "do it", "-i", "pixel.png,{ws}/pixel.png"] }],
  },
  {
    id: "image-missing",
    about: "an image that is not there",
    script: HELLO,
    runs: [{ args: ["exec", "--json", "do it", "-i", "none.png"] }],
  },
  {
    id: "image-not-image",
    about: "an image that is text",
    script: HELLO,
    files: { "ws/text.png": "this is no image" },
    runs: [{ args: ["exec", "--json", "do it", "-i", "text.png"] }],
  },
  {
    id: "reader-gone",
    about: "the reader of stdout leaves after the first line",
    script: [
      { calls: [{ tool: "exec_command", args: { cmd: "echo x > made.txt; sleep 0.5", login: false } }] },
      say("Hello."),
    ],
    runs: [{ args: ["exec", "--json", "-s", "workspace-write", "do it"], isReaderGone: true }],
    looksAt: ["ws/made.txt"],
    // It panics at the next line it prints, while another of its threads already asks the model.
    raced: ["requests", "asked", "files"],
  },
];
