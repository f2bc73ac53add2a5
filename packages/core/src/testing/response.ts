import type { TransportResponse } from '../world/world.ts';

/** Content of a response that a test's transport returns. */
export interface ResponseContent {
  readonly status: number;
  readonly body?: string;
  /** Headers by lower-case name. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

/** Returns a complete response for a test's transport. */
export function responseOf({ status, body = '', headers = {} }: ResponseContent): TransportResponse {
  return {
    status,
    header: (name) => headers[name],
    text: async () => body,
    lines: async function* () {
      for (const line of body.split('\n')) if (line !== '') yield line;
    },
  };
}
