import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { EXPORT_URL, mayExport } from "../api/data";
import { toProblem } from "../api/problem";
import { followDownload } from "../api/saving";
import type { Refused } from "../chat/againText";

/**
 * Have everything downloaded.
 *
 * It is asked first whether that may begin: a browser that follows a link shows no refusal. Then the
 * browser takes it as it comes, however much it is; nothing of it is held here.
 */
export function useTakeAlong() {
  const [refused, setRefused] = useState<Refused | null>(null);
  const asking = useMutation({
    mutationFn: mayExport,
    onMutate: () => {
      setRefused(null);
    },
    onSuccess: () => {
      followDownload(EXPORT_URL);
    },
    onError: (error) => {
      setRefused({ problem: toProblem(error), at: Date.now() });
    },
  });
  return {
    begin: () => {
      if (!asking.isPending) asking.mutate();
    },
    isAsking: asking.isPending,
    refused,
  };
}
