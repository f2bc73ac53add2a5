/**
 * Samples the CPU until the promise resolves. Loads Node's inspector on the first call, because most programs never
 * need it.
 * @returns the profile as JSON, in the format of Chrome's developer tools
 */
export async function recordCpuProfile(until: Promise<void>): Promise<string> {
  const { Session } = process.getBuiltinModule('node:inspector/promises');
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await until;
    const { profile } = await session.post('Profiler.stop');
    return JSON.stringify(profile);
  } finally {
    session.disconnect();
  }
}
