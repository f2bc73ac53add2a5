import { TestbedError } from '../errors.ts';
import { requirePort } from '../process/ports.ts';

/** Ports that `make up` listens on. They are fixed, so that addresses stay valid from one run to the next. */
export interface Ports {
  readonly kubernetes: number;
  readonly vcsim: number;
  readonly vcsimControl: number;
  readonly postgres: number;
  readonly toxiproxy: number;
  readonly cloud: number;
  readonly webhook: number;
  readonly metrics: number;
  readonly mirror: number;
}

const FIRST = 16_440;
const COUNT = 9;

/**
 * Returns nine consecutive ports. The environment variable `PORTS` sets the first one; its default is 16440. Throws
 * `PORT_BUSY` if `PORTS` is no port number, or if one of the ports is in use.
 */
export async function choosePorts(env: NodeJS.ProcessEnv): Promise<Ports> {
  const first = Number(env.PORTS || FIRST);
  if (!Number.isInteger(first) || first < 1024 || first + COUNT > 65_536) {
    throw new TestbedError(
      'PORT_BUSY',
      `PORTS=${env.PORTS} must be a port number from 1024 to ${65_536 - COUNT}`,
    );
  }
  const ports: Ports = {
    kubernetes: first,
    vcsim: first + 1,
    vcsimControl: first + 2,
    postgres: first + 3,
    toxiproxy: first + 4,
    cloud: first + 5,
    webhook: first + 6,
    metrics: first + 7,
    mirror: first + 8,
  };
  for (const [purpose, port] of Object.entries(ports)) await requirePort(port, purpose);
  return ports;
}
