import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Assets } from '../assets/assets.ts';
import { canary } from '../canaries/canary.ts';
import { healthy } from '../process/healthy.ts';
import { Part } from '../process/part.ts';
import { portFor } from '../process/ports.ts';
import { VcsimControl } from './control.ts';

/**
 * Initial inventory of the simulator. Each VM adds 40 ms to the startup, so functional tests should use fewer than 50
 * VMs.
 */
interface VcsimInventory {
  /** @default 1 */
  readonly datacenters?: number;
  /** Clusters per datacenter. @default 1 */
  readonly clusters?: number;
  /** Hosts per cluster. @default 3 */
  readonly hosts?: number;
  /** Hosts per datacenter that are not in a cluster. @default 1 */
  readonly standaloneHosts?: number;
  /** Resource pools per cluster, in addition to its root pool. @default 0 */
  readonly pools?: number;
  /** Number of VMs in each resource pool and on each standalone host. @default 2 */
  readonly vms?: number;
  /** @default 1 */
  readonly datastores?: number;
  /** Distributed port groups per datacenter. @default 1 */
  readonly portgroups?: number;
  /** Number of datacenters that are placed in a folder. @default 0 */
  readonly folders?: number;
  /** Whether the VMs are powered on. @default true */
  readonly autostart?: boolean;
}

export interface VcsimOptions {
  /** Port for vSphere clients. @default a free port */
  readonly port?: number;
  /** Control port. @default a free port */
  readonly controlPort?: number;
  /** The only user who may log in. @default 'administrator@vsphere.local' */
  readonly username?: string;
  /** @default a unique fake password; tests search all output for it, to find leaks */
  readonly password?: string;
  /** Idle timeout of sessions. @default 1_800_000, as in vCenter */
  readonly sessionTimeoutMs?: number;
  readonly inventory?: VcsimInventory;
  /** Names of templates. Each replaces a VM of the inventory. */
  readonly templates?: readonly string[];
  /** `about.instanceUuid` of this vCenter; a restart keeps it. @default a random UUID */
  readonly instanceUuid?: string;
}

/** A simulated vCenter (govmomi's vcsim). Tests can inject faults (`control`) and kill it (`part`). */
export class Vcsim implements AsyncDisposable {
  /** URL of the SOAP API, `https://127.0.0.1:<port>/sdk`. */
  readonly url: string;
  /** `host:port`, as in a client's configuration. */
  readonly host: string;
  readonly username: string;
  readonly password: string;
  /** Certificate that clients must trust, in PEM. A restart keeps it. */
  readonly ca: string;
  /** File with the certificate. */
  readonly caFile: string;
  readonly control: VcsimControl;
  /** The process. After a restart the simulator has its initial inventory and no sessions. */
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
    password = canary('vcenter-password'),
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
      '-tls-folder=.', // the part's own folder
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
