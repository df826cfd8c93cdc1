/** How the page is built, and how it is served while it is worked on: `/api` goes to a running `heddle serve`. */
import { defineConfig } from "vite";

export default defineConfig({
  resolve: { conditions: ["heddle-source", "browser", "import", "default"] },
  oxc: { jsx: { runtime: "automatic" } },
  build: {
    target: "es2023",
    manifest: true,
    // The policy of the page allows no script but files, and a picture is worth a request.
    assetsInlineLimit: (file) => file.endsWith(".svg"),
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/api": process.env["HEDDLE_SERVER"] ?? "http://127.0.0.1:4617" } },
});
