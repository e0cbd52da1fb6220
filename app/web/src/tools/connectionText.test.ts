import { describe, expect, it } from "vitest";

import type { Connection } from "../api/connections";
import { actFailureText, codeText, credentialText, serverName, standingText } from "./connectionText";

const texts = { language: "en", t: ((key: string) => key) as never };
const connection = {
  server: "web",
  title: null,
  state: "unavailable",
  reason: "timeout",
  credential: { kind: "oauth", is_set: true, expires_at: null },
} as Connection;

describe("a connection in words", () => {
  it("is called as the operator says, else by its name", () => {
    expect(serverName(connection)).toBe("web");
    expect(serverName({ ...connection, title: "The web" })).toBe("The web");
  });

  it("says why it is not available, and nothing of it otherwise", () => {
    expect(standingText(texts, connection)).toBe(
      "connections.state.unavailable: connections.reason.timeout",
    );
    expect(standingText(texts, { ...connection, reason: "new" })).toBe(
      "connections.state.unavailable: connections.reason.unavailable",
    );
    expect(standingText(texts, { ...connection, state: "checking" })).toBe(
      "connections.state.checking",
    );
  });

  it("says what it knows the person by, where that is set", () => {
    expect(credentialText(texts, connection)).toBe("connections.signedIn");
    const unset = { kind: "key" as const, is_set: false, expires_at: null };
    expect(credentialText(texts, { ...connection, credential: unset })).toBeNull();
  });
});

describe("why something did not work", () => {
  it("is told by its code, a new one of its kind included", () => {
    expect(codeText(texts, "authorization_denied")).toBe("connections.code.authorization_denied");
    expect(codeText(texts, "oauth_something_new")).toBe("connections.code.oauth_refused");
    expect(codeText(texts, "toString")).toBe("connections.code.other");
  });

  it("is told by the service's words where the code is not one of these", () => {
    const error = { status: 409, text: JSON.stringify({ code: "x", detail: "As it is." }) };
    expect(actFailureText(texts, error)).toBe("connections.actFailed As it is.");
  });
});
