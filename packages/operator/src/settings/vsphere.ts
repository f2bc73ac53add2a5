import type { Flag } from './flags.ts';
import type { Sources } from './sources.ts';
import { MIN_INTERVAL_MS, parseBoolean, parseInteger, parseTime, required, SettingsError } from './values.ts';

/** Settings of the vCenters, and of the VmGroup controller. */
export interface VsphereSettings {
  /** vCenter for all namespaces that `file` does not assign to another vCenter; undefined if only `file` is given. */
  readonly vcenter: VcenterSettings | undefined;
  /** File with several vCenters and their namespaces. */
  readonly file: string | undefined;
  readonly placement: PlacementSettings;
  readonly templates: TemplateSettings;
  readonly timeoutMs: number;
  /**
   * Maximum number of concurrent clones in each vCenter. All other tasks together have a separate limit of the same
   * size.
   */
  readonly concurrency: number;
  readonly sweepMs: number;
}

/** One vCenter and its credentials. */
export interface VcenterSettings {
  readonly name: string;
  readonly server: string;
  /**
   * Credentials, or the folder of a mounted Secret that contains them. The Secret has either the files VC_USER and
   * VC_PASS, or the files GOVMOMI_USERNAME and GOVMOMI_PASSWORD.
   */
  readonly credentials:
    | { readonly username: string; readonly password: string }
    | { readonly folder: string };
  /** File with the CA certificates to trust. */
  readonly ca?: string | undefined;
  /** SHA-256 fingerprint of vCenter's certificate. */
  readonly thumbprint?: string | undefined;
  /** Disables the verification of vCenter's certificate. */
  readonly insecure?: boolean | undefined;
  /** Namespaces whose VmGroups may use this vCenter. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /** Overrides `TemplateSettings.folder` for this vCenter. */
  readonly templateFolder?: string | undefined;
  /** Overrides `TemplateSettings.allowMachines` for this vCenter. */
  readonly allowVmAsTemplate?: boolean | undefined;
  readonly placement?: PlacementSettings | undefined;
}

/** Templates that machines may be cloned from. */
interface TemplateSettings {
  /** Path of the folder with the templates. @default anywhere in the datacenter */
  readonly folder?: string | undefined;
  /** Whether machines that are not templates may be cloned too. */
  readonly allowMachines: boolean;
}

/** Default placement of machines, for fields that a VmGroup does not set. */
interface PlacementSettings {
  readonly datacenter?: string;
  readonly folder?: string;
  readonly cluster?: string;
  readonly resourcePool?: string;
  readonly datastore?: string;
  readonly storagePolicy?: string;
}

/** @throws SettingsError */
export function parseVsphereSettings(sources: Sources): VsphereSettings {
  const { text, name } = sources;
  const file = text('vcenters') || undefined;
  return {
    vcenter: file === undefined || isVcenterGiven(sources) ? parseVcenter(sources) : undefined,
    file,
    placement: parsePlacement(text),
    templates: {
      folder: text('vsphere-template-folder') || undefined,
      allowMachines: parseBoolean(name('vsphere-allow-vm-as-template'), text('vsphere-allow-vm-as-template')),
    },
    timeoutMs: parseTime(name('vsphere-timeout'), text('vsphere-timeout'), MIN_INTERVAL_MS),
    concurrency: parseInteger(name('vsphere-concurrency'), text('vsphere-concurrency'), 1, 1_000),
    sweepMs: parseTime(name('vmgroup-sweep'), text('vmgroup-sweep'), MIN_INTERVAL_MS),
  };
}

/** Whether a vCenter is configured: by a flag, by an environment variable or in the config file. */
export function hasVcenter(sources: Sources): boolean {
  return sources.isGiven('vcenters') || isVcenterGiven(sources);
}

function isVcenterGiven({ isGiven, environment }: Sources): boolean {
  return isGiven('vc-host') || Boolean(environment.GOVMOMI_URL);
}

/** Environment variables of the vCenter: VC_*, or the GOVMOMI_* variables of tools based on govmomi. */
const NAMES = {
  vc: { server: 'VC_HOST', user: 'VC_USER', password: 'VC_PASS' },
  govmomi: { server: 'GOVMOMI_URL', user: 'GOVMOMI_USERNAME', password: 'GOVMOMI_PASSWORD' },
} as const;

function parseVcenter(sources: Sources): VcenterSettings {
  const { text, name, environment } = sources;
  const [host, url] = [text('vc-host'), environment.GOVMOMI_URL];
  if (host !== '' && url && host !== url)
    throw new SettingsError(`${name('vc-host')} and GOVMOMI_URL differ; set one of them, or use --vcenters`);
  const names = host !== '' || !url ? NAMES.vc : NAMES.govmomi;
  const server = required(
    names.server,
    host || url,
    'the name or address of vCenter, such as vcenter.example.com, or disable VmGroups with --controllers=-vmgroup',
  );
  if (server.includes('@'))
    throw new SettingsError(
      `${host === '' ? names.server : name('vc-host')} contains a user or a password; set ${names.user} and ${names.password} instead`,
    );
  const folder = text('vc-credentials');
  if (folder !== '' && environment[names.password])
    throw new SettingsError(
      `${names.password} and ${name('vc-credentials')} are both set; unset one of them`,
    );
  return {
    name: 'default',
    server,
    credentials: folder
      ? { folder }
      : {
          username: required(names.user, environment[names.user], 'the user of vCenter, from a Secret'),
          password: required(
            names.password,
            environment[names.password],
            `the password of ${names.user}, from a Secret`,
          ),
        },
    ca: text('vc-ca') || undefined,
    thumbprint: text('vc-thumbprint') || undefined,
    insecure: parseInsecure(sources),
  };
}

/** Rejects --insecure together with a trusted certificate, because the certificate would not be verified. */
function parseInsecure({ text, name, isGiven }: Sources): boolean {
  const isInsecure = parseBoolean(name('insecure'), text('insecure'));
  const trusted = (['vc-ca', 'vc-thumbprint'] as const).find((flag) => isGiven(flag));
  if (!isInsecure || trusted === undefined) return isInsecure;
  throw new SettingsError(
    `${name('insecure')} disables the verification that ${name(trusted)} asks for; unset one of them`,
  );
}

function parsePlacement(text: Sources['text']): PlacementSettings {
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
