import type { Flag } from './flags.ts';
import { type Environment, required, SettingsError, SHORTEST_MS, time, truth, whole } from './values.ts';

export interface VsphereSettings {
  /** The one for all that no other is for; undefined where there is only a file of them. */
  readonly vcenter: VcenterSettings | undefined;
  /** A file that says which vCenters there are, and for whom. */
  readonly file: string | undefined;
  readonly placement: PlacementSettings;
  readonly templates: TemplateSettings;
  readonly timeoutMs: number;
  /** Number of clones at a time, and of other tasks, for each vCenter. */
  readonly concurrency: number;
  readonly sweepMs: number;
}

/** One vCenter, and how to get in. */
export interface VcenterSettings {
  readonly name: string;
  readonly server: string;
  /** Or a folder that they are in, in files as a Secret is mounted: VC_USER and VC_PASS. */
  readonly credentials:
    | { readonly username: string; readonly password: string }
    | { readonly folder: string };
  /** A file with the authorities to trust. */
  readonly ca?: string | undefined;
  /** SHA-256 of its certificate. */
  readonly thumbprint?: string | undefined;
  /** Takes whatever certificate it shows. */
  readonly insecure?: boolean | undefined;
  /** The namespaces whose groups may be here. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /** As `TemplateSettings.folder`. @default that of all vCenters */
  readonly templateFolder?: string | undefined;
  /** As `TemplateSettings.allowMachines`. @default that of all vCenters */
  readonly allowVmAsTemplate?: boolean | undefined;
  readonly placement?: PlacementSettings | undefined;
}

/** What machines may be cloned from. */
interface TemplateSettings {
  /** Path of the folder that templates are in. @default anywhere in the datacenter */
  readonly folder?: string | undefined;
  /** Whether machines that are not templates may be cloned too. */
  readonly allowMachines: boolean;
}

/** Where machines go when a group does not say. */
interface PlacementSettings {
  readonly datacenter?: string;
  readonly folder?: string;
  readonly cluster?: string;
  readonly resourcePool?: string;
  readonly datastore?: string;
  readonly storagePolicy?: string;
}

/** @throws SettingsError */
export function vsphereIn(text: (flag: Flag) => string, environment: Environment): VsphereSettings {
  const file = text('vcenters') || undefined;
  const isGiven = environment.VC_HOST !== undefined && environment.VC_HOST !== '';
  return {
    vcenter: file === undefined || isGiven ? vcenterIn(text, environment) : undefined,
    file,
    placement: placementIn(text),
    templates: {
      folder: text('vsphere-template-folder') || undefined,
      allowMachines: truth('vsphere-allow-vm-as-template', text('vsphere-allow-vm-as-template')),
    },
    timeoutMs: time('vsphere-timeout', text('vsphere-timeout'), SHORTEST_MS),
    concurrency: whole('vsphere-concurrency', text('vsphere-concurrency'), 1, 1_000),
    sweepMs: time('vmgroup-sweep', text('vmgroup-sweep'), SHORTEST_MS),
  };
}

function vcenterIn(text: (flag: Flag) => string, environment: Environment): VcenterSettings {
  const { VC_HOST, VC_USER, VC_PASS, VC_CREDENTIALS, VC_CA, VC_THUMBPRINT } = environment;
  const server = required(
    'VC_HOST',
    VC_HOST,
    "vCenter's name or address, such as vcenter.example.com; where there is no vCenter, leave VmGroups out with --controllers=vm",
  );
  if (server.includes('@'))
    throw new SettingsError('VC_HOST has a user or a password in it; these have variables of their own');
  return {
    name: 'default',
    server,
    credentials: VC_CREDENTIALS
      ? { folder: VC_CREDENTIALS }
      : {
          username: required('VC_USER', VC_USER, 'the user with whom vCenter lets us in, from a Secret'),
          password: required('VC_PASS', VC_PASS, 'the password of VC_USER, from a Secret'),
        },
    ca: VC_CA || undefined,
    thumbprint: VC_THUMBPRINT || undefined,
    insecure: truth('insecure', text('insecure')),
  };
}

function placementIn(text: (flag: Flag) => string): PlacementSettings {
  const given = (name: keyof PlacementSettings, flag: Flag): PlacementSettings =>
    text(flag) === '' ? {} : { [name]: text(flag) };
  return {
    ...given('datacenter', 'vsphere-datacenter'),
    ...given('folder', 'vsphere-folder'),
    ...given('cluster', 'vsphere-cluster'),
    ...given('resourcePool', 'vsphere-resource-pool'),
    ...given('datastore', 'vsphere-datastore'),
    ...given('storagePolicy', 'vsphere-storage-policy'),
  };
}
