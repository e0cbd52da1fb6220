import { Button, createTheme } from "@mantine/core";

/**
 * The look, as far as it needs script.
 *
 * Values that Mantine would write into a `<style>` element are set in `app.css` instead: the
 * Content-Security-Policy allows no styles but those from files of the service.
 */
export const theme = createTheme({
  primaryColor: "indigo",
  defaultRadius: "md",
  respectReducedMotion: true,
  cursorType: "pointer",
  components: {
    // No smaller than a finger.
    Button: Button.extend({ defaultProps: { size: "md", mih: 44 } }),
  },
});
