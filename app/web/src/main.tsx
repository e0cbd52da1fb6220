import "./app.css";

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./App";
import { startMessages } from "./messages/i18n";

const root = document.getElementById("root");
if (!root) throw new Error("The page has no element to draw in.");

await startMessages();
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
