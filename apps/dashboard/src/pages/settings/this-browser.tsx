/** How the page looks here, and the end of this browser's login. Kept in this browser alone. */
import type { ReactNode } from "react";
import { logout } from "../../live/session.ts";
import { useStore } from "../../live/store.ts";
import { ActButton, Refusal, useAct } from "../../parts/act.tsx";
import { Segments } from "../../parts/base.tsx";
import { prefer, preferences } from "../../preferences.ts";

export function ThisBrowser(): ReactNode {
  const { theme, textSize, areKeysOff } = useStore(preferences);
  const act = useAct();
  return (
    <section className="set-part" aria-labelledby="browser">
      <h2 className="h" id="browser">
        This browser
      </h2>
      <dl className="set">
        <dt>colours</dt>
        <dd>
          <Segments
            label="Colours"
            value={theme}
            onChoose={(value) => prefer({ theme: value })}
            choices={[
              { value: "system", label: "as the system" },
              { value: "dark", label: "dark" },
              { value: "light", label: "light" },
            ]}
          />
        </dd>
        <dt>text</dt>
        <dd>
          <Segments
            label="Size of text"
            value={textSize}
            onChoose={(value) => prefer({ textSize: value })}
            choices={[
              { value: "normal", label: "normal" },
              { value: "large", label: "large" },
            ]}
          />
        </dd>
        <dt>single keys</dt>
        <dd>
          <Segments
            label="Single keys"
            value={areKeysOff ? "off" : "on"}
            onChoose={(value) => prefer({ areKeysOff: value === "off" })}
            choices={[
              { value: "on", label: "on" },
              { value: "off", label: "off" },
            ]}
          />
        </dd>
      </dl>
      <ActButton act={act} name="Log out" call={logout} />
      <Refusal act={act} />
    </section>
  );
}
