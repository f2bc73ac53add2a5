import { Agent, request } from 'undici';

/**
 * Whether a part of ours answers 200 here, and so. Its own certificate is made up at its start, so
 * there is none to trust.
 */
export async function healthy(url: string, answers = /^/): Promise<boolean> {
  const agent = new Agent({ connect: { rejectUnauthorized: false }, headersTimeout: 5_000 });
  try {
    const { statusCode, body } = await request(url, { dispatcher: agent });
    const answer = await body.text();
    return statusCode === 200 && answers.test(answer);
  } finally {
    await agent.destroy();
  }
}
