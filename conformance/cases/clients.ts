/** Ways in which clients and scripts call `exec`: how they go on with threads, and name what they give. */
import { command, json, MOCK_CONFIG, MOCK_PROVIDER, patch, say, type ExecCase } from "../exec-case.ts";

const HELLO = [say("Hello.")];
const TWO = [say("First."), say("Second.")];
const SCHEMA = JSON.stringify({
  type: "object",
  properties: { answer: { type: "string" } },
  required: ["answer"],
  additionalProperties: false,
});
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const MAKE_PIXEL = `echo ${PIXEL} | base64 -d > pixel.png`;
const ON_BRANCH = `git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first; echo x > new.txt`;

export const CLIENT_CASES: readonly ExecCase[] = [
  {
    id: "stdin-long",
    about: "a prompt of a hundred thousand characters",
    script: HELLO,
    runs: [{ args: ["exec", "--json"], stdin: "long ".repeat(20_000) }],
  },
  {
    id: "stdin-scripts",
    about: "a prompt in scripts of several languages, and an answer in them",
    script: [say("漢字とかな。Кириллица 🙂")],
    runs: [{ args: ["exec", "--json"], stdin: "漢字かな交じり文。Кириллица, العربية, עברית 🙂" }],
  },
  {
    id: "prompt-dashes",
    about: "a prompt that begins with a dash, after --",
    script: HELLO,
    runs: [{ args: ["exec", "--json", "--", "-x is a flag of what?"] }],
  },
  { id: "exec-short", about: "e for exec", script: HELLO, runs: [{ args: ["e", "--json", "do it"] }] },
  {
    id: "resume-schema",
    about: "a second turn with a schema of its own",
    script: [say("First."), say('{"answer":"yes"}')],
    files: { "schema.json": SCHEMA },
    runs: [
      json(),
      { args: ["exec", "--json", "resume", "{thread}", "--output-schema", "{root}/schema.json", "go on"] },
    ],
  },
  {
    id: "resume-image",
    about: "a second turn with an image after the thread's id",
    script: TWO,
    setUp: MAKE_PIXEL,
    runs: [json(), { args: ["exec", "--json", "resume", "{thread}", "-i", "pixel.png", "--", "look"] }],
  },
  {
    id: "resume-last-prompt-after",
    about: "--last, then flags, then the prompt",
    script: TWO,
    runs: [json(), { args: ["exec", "resume", "--last", "--json", "go on"] }],
  },
  {
    id: "resume-overrides",
    about: "a second turn with an effort and a sandbox of its own",
    script: [say("First."), command("echo x > made.txt; sleep 0.3"), say("Second.")],
    looksAt: ["ws/made.txt"],
    runs: [
      json(),
      {
        args: [
          "exec",
          "--json",
          "-s",
          "workspace-write",
          "-c",
          'model_reasoning_effort="high"',
          "resume",
          "{thread}",
          "go on",
        ],
      },
    ],
  },
  {
    id: "resume-last-message",
    about: "-o of a second turn replaces that of the first",
    script: TWO,
    looksAt: ["answer.txt"],
    runs: [
      json("-o", "{root}/answer.txt"),
      { args: ["exec", "--json", "resume", "{thread}", "-o", "{root}/answer.txt", "go on"] },
    ],
  },
  {
    id: "resume-outside-git",
    about: "a second turn outside a repository, with the check skipped both times",
    script: TWO,
    isOutsideGit: true,
    runs: [
      json("--skip-git-repo-check"),
      { args: ["exec", "--json", "--skip-git-repo-check", "resume", "{thread}", "go on"] },
    ],
  },
  {
    id: "last-message-relative",
    about: "-o by a relative name is in the folder of the caller, not of -C",
    script: HELLO,
    setUp: "git init -q {root}/other",
    looksAt: ["ws/answer.txt", "other/answer.txt"],
    runs: [json("-C", "{root}/other", "-o", "answer.txt")],
  },
  {
    id: "last-message-of-two",
    about: "-o holds the last message, not what was said before a command",
    script: [{ text: "I look.", ...command("echo one") }, say("Done.")],
    looksAt: ["answer.txt"],
    runs: [json("-o", "{root}/answer.txt")],
  },
  {
    id: "schema-image",
    about: "a schema and an image in one turn",
    script: [say('{"answer":"yes"}')],
    files: { "schema.json": SCHEMA },
    setUp: MAKE_PIXEL,
    runs: [json("--output-schema", "{root}/schema.json", "-i", "pixel.png", "--")],
  },
  {
    id: "image-stdin",
    about: "an image, and the prompt from standard input",
    script: HELLO,
    setUp: MAKE_PIXEL,
    runs: [{ args: ["exec", "--json", "-i", "pixel.png"], stdin: "look" }],
  },
  {
    id: "override-twice",
    about: "-c with one key twice, and -m before both",
    script: HELLO,
    config: MOCK_CONFIG,
    runs: [json("-m", "gpt-5.5", "-c", 'model_reasoning_effort="low"', "-c", 'model_reasoning_effort="high"')],
  },
  {
    id: "profile-and-flag",
    about: "a flag counts more than the profile",
    script: HELLO,
    config: `model_provider = "mock"\n${MOCK_PROVIDER}`,
    files: { "codex/work.config.toml": 'model = "gpt-5.4"\n' },
    runs: [json("-p", "work", "-m", "gpt-5.5")],
  },
  {
    id: "folder-odd-name",
    about: "-C into a folder with spaces and letters of another script",
    script: [command("pwd; echo x > made.txt; sleep 0.3"), say("Done.")],
    setUp: "git init -q '{root}/mein Ordner 漢字'",
    looksAt: ["mein Ordner 漢字/made.txt"],
    runs: [json("-C", "{root}/mein Ordner 漢字", "-s", "workspace-write")],
  },
  {
    id: "folder-below",
    about: "a folder below the repository's root",
    script: HELLO,
    setUp: "mkdir below",
    runs: [{ ...json(), cwd: "{ws}/below" }],
  },
  {
    id: "added-folders-two",
    about: "two folders besides the workspace",
    script: [command("echo a > ../one/a.txt; echo b > ../two/b.txt; sleep 0.3"), say("Done.")],
    files: { "one/keep": "", "two/keep": "" },
    looksAt: ["one/a.txt", "two/b.txt"],
    runs: [json("-s", "workspace-write", "--add-dir", "{root}/one", "--add-dir", "{root}/two")],
  },
  {
    id: "command-scripts",
    about: "a command that prints several scripts",
    script: [command("printf '漢字 Кириллица 🙂\\n'; sleep 0.3"), say("Done.")],
    runs: [json()],
  },
  {
    id: "command-reads-input",
    about: "a command that reads standard input finds its end",
    script: [command("cat; echo over; sleep 0.3"), say("Done.")],
    runs: [{ ...json(), stdin: "of the caller" }],
  },
  {
    id: "patch-scripts",
    about: "a file whose name and content are in other scripts",
    script: [patch("*** Add File: 漢字.txt", "+Кириллица 🙂"), say("Done.")],
    looksAt: ["ws/漢字.txt"],
    runs: [json("-s", "workspace-write")],
  },
  {
    id: "mcp-required-missing",
    about: "an MCP server that must start and cannot",
    script: HELLO,
    config: `${MOCK_CONFIG}\n[mcp_servers.gone]\ncommand = "{root}/no-such-program"\nrequired = true\n`,
    runs: [json()],
  },
  {
    id: "mcp-optional-missing",
    about: "an MCP server that cannot start and need not",
    script: HELLO,
    config: `${MOCK_CONFIG}\n[mcp_servers.gone]\ncommand = "{root}/no-such-program"\n`,
    runs: [json()],
  },
  {
    id: "ephemeral-last-message",
    about: "-o of a thread that is not kept",
    script: HELLO,
    looksAt: ["answer.txt"],
    runs: [json("--ephemeral", "-o", "{root}/answer.txt")],
  },
  {
    id: "review-last-message",
    about: "a review into a file",
    script: [say("It is fine.")],
    setUp: ON_BRANCH,
    looksAt: ["answer.txt"],
    runs: [{ args: ["exec", "--json", "-o", "{root}/answer.txt", "review", "--uncommitted"] }],
  },
  {
    id: "review-base-unknown",
    about: "a review since a branch that is not there",
    script: [say("It is fine.")],
    setUp: ON_BRANCH,
    runs: [{ args: ["exec", "--json", "review", "--base", "no-such-branch"] }],
  },
  {
    id: "review-titled",
    about: "a review of a commit that has a title",
    script: [say("It is fine.")],
    setUp: ON_BRANCH,
    runs: [{ args: ["exec", "--json", "review", "--commit", "HEAD", "--title", "first steps"] }],
  },
];
