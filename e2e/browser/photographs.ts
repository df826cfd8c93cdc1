/** Every page as it looks with the recorded answers: fixed clock, zone, fonts and motion, so that only the page can change it. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { settled } from "./probes.ts";
import type { Recorded, Recording } from "./recorded.ts";

export const THEMES = ["dark", "light"] as const;
export const VIEWS = {
  wide: { viewport: { width: 1440, height: 900 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true },
} as const satisfies Readonly<Record<string, BrowserContextOptions>>;
export type View = keyof typeof VIEWS;

export interface Photograph {
  /** `run-wide-dark` */
  readonly name: string;
  readonly png: Buffer;
}

const KEPT_TOKEN = "heddle.token";

export async function* photographs(
  browser: Browser,
  { at, places }: Recording,
  { url }: Recorded,
): AsyncGenerator<Photograph, void, void> {
  for (const view of Object.keys(VIEWS) as View[]) {
    const context = await browser.newContext({
      ...VIEWS[view],
      reducedMotion: "reduce",
      timezoneId: "UTC",
      locale: "en-GB",
    });
    try {
      const page = await context.newPage();
      await page.clock.setFixedTime(at);
      // Whoever is not logged in is shown the login, wherever that is.
      await page.addInitScript((key) => {
        if (location.pathname === "/login") localStorage.removeItem(key);
        else localStorage.setItem(key, "recorded");
      }, KEPT_TOKEN);
      for (const [place, address] of Object.entries(places)) {
        await page.goto(`${url}${address}`);
        await atRest(page);
        for (const theme of THEMES) {
          await page.emulateMedia({ colorScheme: theme });
          yield { name: `${place}-${view}-${theme}`, png: await page.screenshot({ caret: "hide" }) };
        }
      }
    } finally {
      await context.close();
    }
  }
}

const LOOK_MS = 100;
const SAME_LOOKS = 4;
const MOST_LOOKS = 100;

/** Streams of events stay open, so the network is never idle: a page has come to rest when its text stays the same. */
export async function atRest(page: Page, sameLooks = SAME_LOOKS): Promise<void> {
  await settled(page);
  await page.locator("#main h1").first().waitFor();
  let before = "";
  let same = 0;
  for (let look = 0; look < MOST_LOOKS && same < sameLooks; look += 1) {
    const text = await page.locator("#main").innerText();
    same = text === before ? same + 1 : 0;
    before = text;
    await page.waitForTimeout(LOOK_MS);
  }
  await settled(page);
}
