import { describe, expect, test } from "vitest";
import { agentEnvironment, commandEnvironment, type AgentEnvironment } from "./environment.ts";

test("only listed variables pass", () => {
  const source = {
    PATH: "/bin",
    HOME: "/home/u",
    LANG: "C",
    LC_ALL: "C",
    LC_TIME: "C",
    TERM: "xterm",
    TZ: "UTC",
    TMPDIR: "/t",
    USER: "u",
    LOGNAME: "u",
    SHELL: "/bin/sh",
    CI: "1",
    COLORTERM: "truecolor",
    NO_COLOR: "1",
    FORCE_COLOR: "0",
  };
  expect(commandEnvironment(source)).toEqual(source);
});

test.for([
  "OPENAI_API_KEY",
  "ANTHROPIC_API_KEY",
  "HEDDLE_HOME",
  "GITHUB_TOKEN",
  "MY_SECRET",
  "DB_PASSWORD",
  "SSH_AUTH_SOCK",
  "LD_PRELOAD",
  "LD_LIBRARY_PATH",
  "NODE_OPTIONS",
  "GIT_DIR",
  "GIT_SSH_COMMAND",
  "BASH_ENV",
  "ENV",
  "PYTHONPATH",
  "PERL5OPT",
  "XDG_RUNTIME_DIR",
  "DBUS_SESSION_BUS_ADDRESS",
  "http_proxy",
  "LC_secret",
  "LC_API_KEY",
  "BASH_FUNC_ls%%",
])("%s does not reach a command", (name) => {
  expect(commandEnvironment({ PATH: "/bin", [name]: "x" })).toEqual({ PATH: "/bin" });
});

test("what the caller names is taken, and wins", () => {
  expect(commandEnvironment({ PATH: "/bin", CI: "1" }, { CI: "2", MY_TOKEN: "on purpose" })).toEqual({
    PATH: "/bin",
    CI: "2",
    MY_TOKEN: "on purpose",
  });
});

test("there is always a path to find programs by", () => {
  expect(commandEnvironment({})["PATH"]).toContain("/usr/bin");
});

describe("15.7: the environment of an agent's commands", () => {
  const SOURCE = {
    PATH: "/bin",
    HOME: "/home/u",
    LC_ALL: "C",
    JAVA_HOME: "/opt/java",
    VIRTUAL_ENV: "/w/.venv",
    MY_WORD: "word",
    GIT_AUTHOR_NAME: "U",
    A_TOKEN: "t",
    DB_PASSWORD: "p",
    SSH_AUTH_SOCK: "/run/agent",
    DATABASE_URL: "postgres://u:looks-secret@h/db",
    OPENAI_API_KEY: "sk",
    COPY: "the-key",
    HEDDLE_HOME: "/home/u/.heddle",
    PWD: "/elsewhere",
    BASH_ENV: "/x",
    "BASH_FUNC_ls%%": "() { :; }",
    "a.b": "1",
  };
  const names = (policy: AgentEnvironment["policy"]): string[] =>
    Object.keys(
      agentEnvironment({
        source: SOURCE,
        policy,
        isKey: (name, value) => name === "OPENAI_API_KEY" || value === "the-key",
        looksSecret: (value) => value.includes("looks-secret"),
      }),
    );
  const PLAIN = ["PATH", "HOME", "LC_ALL", "JAVA_HOME", "VIRTUAL_ENV", "MY_WORD", "GIT_AUTHOR_NAME"];
  const SECRET = ["A_TOKEN", "DB_PASSWORD", "SSH_AUTH_SOCK", "DATABASE_URL"];

  test.each<[string, AgentEnvironment["policy"], readonly string[]]>([
    ["nothing is said: all but what looks like a secret", {}, PLAIN],
    ["the excludes by default are wanted", { ignoresDefaultExcludes: false }, PLAIN],
    ["they are not: all but keys", { ignoresDefaultExcludes: true }, [...PLAIN, ...SECRET]],
    ["only the core", { inherit: "core" }, ["PATH", "HOME", "LC_ALL"]],
    ["nothing, and there is still a path", { inherit: "none" }, ["PATH"]],
    [
      "patterns of names, in any case",
      { exclude: ["*_home", "MY_W?RD", "git*name", "LC_A"] },
      ["PATH", "HOME", "LC_ALL", "VIRTUAL_ENV"],
    ],
    ["only these", { includeOnly: ["PATH", "*_HOME"] }, ["PATH", "JAVA_HOME"]],
    [
      "set is not excluded, but included or not",
      { set: { MY_SET: "1", OTHER: "2" }, exclude: ["MY_*"], includeOnly: ["MY_*"] },
      ["PATH", "MY_SET"],
    ],
    ["no key by set either", { inherit: "none", set: { OPENAI_API_KEY: "x", Y: "the-key", Z: "a\0b" } }, ["PATH"]],
  ])("%s", (_, policy, expected) => {
    expect(names(policy).toSorted()).toEqual([...expected].toSorted());
  });

  test("a pattern of many stars takes no time", () => {
    const policy = { exclude: [`${"*a".repeat(120)}b`] };
    const source = { ["a".repeat(5000)]: "x" };
    const begun = process.threadCpuUsage().user;
    agentEnvironment({ source, policy, isKey: () => false, looksSecret: () => false });
    expect(process.threadCpuUsage().user - begun).toBeLessThan(1_000_000);
  });
});
