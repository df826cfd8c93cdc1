/** What is looked for in a drawn page. The functions run in the page, so they stand by themselves. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type Axe from "axe-core";
import type { Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Drawn, with nothing on its way. */
export async function settled(page: Page): Promise<void> {
  await page.locator("#main").first().waitFor();
  await page.waitForFunction(() => document.querySelector(".waiting") === null && document.fonts.status === "loaded");
}

/** Goes to another address as a link of the page does, which costs a tenth of loading it. */
export async function visit(page: Page, at: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, at);
  await settled(page);
}

/** Each green thing that does not stand beside the word "verified", as its text or its name. */
export function greenWithoutVerdict(page: Page): Promise<readonly string[]> {
  return page.evaluate(() => {
    const KINDS = [
      "color",
      "background-color",
      "border-top-color",
      "border-right-color",
      "border-bottom-color",
      "border-left-color",
      "outline-color",
      "text-decoration-color",
      "fill",
      "stroke",
    ];
    const isGreen = (value: string): boolean => {
      const [r = 0, g = 0, b = 0, alpha = 1] = (value.match(/[\d.]+/g) ?? []).map(Number);
      if (!/^(?:rgb|color)/.test(value) || alpha < 0.05) return false;
      const most = Math.max(r, g, b);
      // Green leads both others by a fifth: teal and lime are green, blue, rust and amber are not.
      return g === most && most > 0 && (g - Math.max(r, b)) / most > 0.12;
    };
    const words = (element: Element): string => {
      const named = [element, ...element.querySelectorAll("[aria-label], [title]")];
      const names = named.flatMap((one) => [one.getAttribute("aria-label") ?? "", one.getAttribute("title") ?? ""]);
      return [element.textContent, ...names].join(" ");
    };
    // What is nearest and speaks of a verdict at all: the row, the card, the head of the page.
    const isVerdict = (element: Element): boolean => {
      for (let at: Element | null = element; at !== null && at.id !== "root"; at = at.parentElement) {
        const said = words(at);
        // The other verdict: the record is what was written.
        if (/record is what was written|whole up to event/i.test(said)) return true;
        if (/verified/i.test(said)) return !/not verified|unverified|claimed|rejected/i.test(said);
      }
      return false;
    };
    const found: string[] = [];
    for (const element of document.querySelectorAll("body, body *")) {
      if (element.getClientRects().length === 0) continue;
      for (const pseudo of [undefined, "::before", "::after"]) {
        const style = getComputedStyle(element, pseudo);
        if (pseudo !== undefined && style.content === "none") continue;
        const kind = KINDS.find((name) => isGreen(style.getPropertyValue(name)));
        if (kind === undefined || isVerdict(element)) continue;
        found.push(
          `${kind} of <${element.tagName.toLowerCase()} class="${element.className.toString()}"> ${words(element).slice(0, 60)}`,
        );
      }
    }
    return found;
  });
}

/** Every finding of axe-core, as its rule and the first element; of all rules unless some are named. */
export async function axeFindings(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  // A script element would need a place in the policy of the page.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  return await page.evaluate(async (only) => {
    const { axe } = globalThis as unknown as { axe: typeof Axe };
    const runOnly = only === undefined ? {} : { runOnly: [...only] };
    const { violations } = await axe.run(document, { preload: false, resultTypes: ["violations"], ...runOnly });
    return violations.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`,
    );
  }, rules);
}

/** How far a page can be scrolled sideways. */
export function sidewaysPx(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

const CONTROLS = new Set(
  "button checkbox combobox link listbox menuitem option radio searchbox slider spinbutton switch tab textbox".split(
    " ",
  ),
);

/** What a screen reader would call only by its kind. */
export async function unnamedControls(page: Page): Promise<readonly string[]> {
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  await session.detach();
  return nodes.flatMap(({ ignored, role, name }) =>
    !ignored && CONTROLS.has(String(role?.value)) && String(name?.value ?? "").trim() === ""
      ? [`a ${String(role?.value)} without a name`]
      : [],
  );
}
