import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** The service that `npm run dev` forwards the API to. */
const service = process.env["STOA_DEV_ORIGIN"] ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "dist",
    // A data: URL would need an exception in the Content-Security-Policy.
    assetsInlineLimit: 0,
    // The polyfill is an inline script in spirit; every supported browser preloads modules.
    modulePreload: { polyfill: false },
    // Most of it is the SDK and the components, needed on the only page there is.
    chunkSizeWarningLimit: 900,
  },
  server: {
    proxy: Object.fromEntries(
      [
        "/me",
        "/runtime",
        "/memories",
        "/mentions",
        "/models",
        "/approvals",
        "/connections",
        "/threads",
        "/events",
        "/erasures",
        "/.well-known",
        "/admin",
        "/auth",
        "/info",
        "/ok",
      ].map((path) => [path, service]),
    ),
  },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.{ts,tsx}"],
    // They end what hangs, and no test on a machine that is busy.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
