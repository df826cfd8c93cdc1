import { expect, test } from "vitest";
import { commandEnvironment } from "./environment.ts";

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
