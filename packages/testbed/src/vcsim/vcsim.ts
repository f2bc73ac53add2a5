import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Assets } from '../assets/assets.ts';
import { healthy } from '../process/healthy.ts';
import { Part } from '../process/part.ts';
import { portFor } from '../process/ports.ts';
import { VcsimControl } from './control.ts';

/** What the simulator starts with. Machines take 40 ms each, so keep functional tests below fifty. */
interface VcsimInventory {
  /** @default 1 */
  readonly datacenters?: number;
  /** In a datacenter. @default 1 */
  readonly clusters?: number;
  /** In a cluster. @default 3 */
  readonly hosts?: number;
  /** Outside clusters, in a datacenter. @default 1 */
  readonly standaloneHosts?: number;
  /** In a cluster, beside its root pool. @default 0 */
  readonly pools?: number;
  /** In a resource pool and on a standalone host. @default 2 */
  readonly vms?: number;
  /** @default 1 */
  readonly datastores?: number;
  /** In a datacenter. @default 1 */
  readonly portgroups?: number;
  /** Datacenters that are put into a folder. @default 0 */
  readonly folders?: number;
  /** Whether the machines are on. @default true */
  readonly autostart?: boolean;
}

export interface VcsimOptions {
  /** For vSphere clients. @default a free one */
  readonly port?: number;
  /** For the control port. @default a free one */
  readonly controlPort?: number;
  /** The only user who may log in. @default 'administrator@vsphere.local' */
  readonly username?: string;
  /** @default 'vmwright' */
  readonly password?: string;
  /** How long a session may be idle. @default 1_800_000, as vCenter has it */
  readonly sessionTimeoutMs?: number;
  readonly inventory?: VcsimInventory;
  /** Templates, each in the place of a machine. */
  readonly templates?: readonly string[];
  /** Identity of this vCenter, `about.instanceUuid`; a restart keeps it. @default a new one */
  readonly instanceUuid?: string;
}

/** A vCenter: govmomi's simulator, which a test can also hurt (`control`) and kill (`part`). */
export class Vcsim implements AsyncDisposable {
  /** Of the SOAP API, `https://127.0.0.1:<port>/sdk`. */
  readonly url: string;
  /** Name and port, as in a client's configuration. */
  readonly host: string;
  readonly username: string;
  readonly password: string;
  /** The certificate that a client must trust, in PEM. It stays the same when the part is started again. */
  readonly ca: string;
  /** The file that it is in. */
  readonly caFile: string;
  readonly control: VcsimControl;
  /** To kill, pause and start again; what is started again has the inventory of its first start and no sessions. */
  readonly part: Part;

  constructor(fields: Omit<Vcsim, typeof Symbol.asyncDispose>) {
    this.url = fields.url;
    this.host = fields.host;
    this.username = fields.username;
    this.password = fields.password;
    this.ca = fields.ca;
    this.caFile = fields.caFile;
    this.control = fields.control;
    this.part = fields.part;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.part[Symbol.asyncDispose]();
  }
}

export async function startVcsim(options: VcsimOptions = {}): Promise<Vcsim> {
  const {
    username = 'administrator@vsphere.local',
    password = 'vmwright',
    inventory = {},
    templates = [],
    instanceUuid = randomUUID(),
  } = options;
  const port = await portFor('vcsim', options.port);
  const controlPort = await portFor("vcsim's control port", options.controlPort);
  const host = `127.0.0.1:${port}`;
  const control = new VcsimControl(`http://127.0.0.1:${controlPort}`);
  const part = await Part.start({
    name: 'vcsim',
    command: await new Assets().path('vcsim'),
    args: [
      `-listen=${host}`,
      `-control=127.0.0.1:${controlPort}`,
      `-username=${username}`,
      `-password=${password}`,
      '-tls-folder=.', // the part's own
      `-instance-uuid=${instanceUuid}`,
      ...(options.sessionTimeoutMs === undefined ? [] : [`-session-timeout=${options.sessionTimeoutMs}ms`]),
      ...(templates.length === 0 ? [] : [`-templates=${templates.join()}`]),
      ...inventoryArgs(inventory),
    ],
    ready: () => healthy(`${control.url}/calls`),
  });
  const caFile = join(part.dir, 'certificate.pem');
  const ca = await readFile(caFile, 'utf8');
  return new Vcsim({ url: `https://${host}/sdk`, host, username, password, ca, caFile, control, part });
}

function inventoryArgs(inventory: VcsimInventory): string[] {
  return Object.entries(inventory).map(([name, value]) => {
    const option = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return `-${option}=${value}`;
  });
}
