import { expect, test } from "vitest";
import { commands } from "./command-table.ts";
import { helpText } from "./command.ts";

test.each(Object.keys(commands))("15.14: --help of %s shows every option that it takes", async (name) => {
  const command = await commands[name]?.load();
  const shown = new Set(command === undefined ? [] : helpText(command).match(/(?<=[\s,])--?[A-Za-z][a-z0-9-]*/g));
  const taken = command?.options.flatMap(({ name: long, short, aliases = [] }) => [
    `--${long}`,
    ...aliases.map((alias) => `--${alias}`),
    ...(short === undefined ? [] : [`-${short}`]),
  ]);
  expect(taken?.filter((option) => !shown.has(option))).toEqual([]);
});
