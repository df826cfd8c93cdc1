import { McpServerConfig } from "@heddle/protocol";
import { expect, test } from "vitest";
import { programFolders } from "./program-folders.ts";

const server = (command: string, args: string[], cwd?: string): McpServerConfig =>
  McpServerConfig.parse({ name: "s", command, args, ...(cwd === undefined ? {} : { cwd }) });

test("the folder below a private folder that holds a program is named once, everything else is left alone", () => {
  const servers = [
    server("/usr/bin/node", ["/tmp/checkout/server/main.js", "--root", "relative/path"], "/var/tmp/data/x"),
    server("/tmp/checkout/bin/other", []),
    McpServerConfig.parse({ name: "web", url: "http://127.0.0.1:1/mcp" }),
  ];
  expect(programFolders(servers)).toEqual(["/tmp/checkout", "/var/tmp/data"]);
});
