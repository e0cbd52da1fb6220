import { Flag } from "./flag";

/** The service's word for an account that is suspended, being erased, or gone. */
export const USER_UNAVAILABLE = "user_unavailable";

/** Whether a request was refused for the account's sake, and nobody has looked why yet. */
export const unavailable = new Flag();

/** Notice a refusal that is about the account and not about what was asked for. */
export async function noteUnavailable(response: Response): Promise<void> {
  if (response.status !== 403) return;
  try {
    const problem = (await response.clone().json()) as { code?: unknown } | null;
    if (problem?.code === USER_UNAVAILABLE) unavailable.set();
  } catch {
    // No problem document: it is not the service that refused.
  }
}
