import { Agent, request } from 'undici';

/**
 * Returns whether a server responds with status 200 and a body that matches `expected`. The certificate is not
 * verified, because some programs of the testbed generate a self-signed certificate at startup.
 */
export async function healthy(url: string, expected = /^/): Promise<boolean> {
  const agent = new Agent({ connect: { rejectUnauthorized: false }, headersTimeout: 5_000 });
  try {
    const { statusCode, body } = await request(url, { dispatcher: agent });
    const text = await body.text();
    return statusCode === 200 && expected.test(text);
  } finally {
    await agent.destroy();
  }
}
