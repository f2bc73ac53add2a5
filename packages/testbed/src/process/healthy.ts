import { Agent, request } from 'undici';

/**
 * Returns whether a part responds with 200 and a body that matches `expected`. The certificate is not verified, because parts
 * generate self-signed ones at startup.
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
