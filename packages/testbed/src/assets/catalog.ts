/**
 * The programs of the testbed. A bundle contains the programs of one Go module, which are built, downloaded and cached
 * together. A test checks that the versions here match the `go.mod` in `tools/<bundle>`.
 */
export type Program =
  | 'etcd'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubectl'
  | 'kwok'
  | 'virt-controller'
  | 'virt-api'
  | 'vcsim'
  | 'toxiproxy-server'
  | 'promtool'
  | 'lua-health'
  | 'helm';

export interface Release {
  readonly url: string;
  /** Path of the program inside the archive, if the release is an archive. */
  readonly member?: string;
  readonly checksum: {
    readonly url: string;
    /** Extracts the SHA-256 of the file from the response of `url`. */
    readonly read: (text: string) => string | undefined;
  };
}

export interface Bundle {
  readonly name: string;
  readonly version: string;
  /**
   * Maps each program to its Go package. If a bundle has several programs, the last path element of each package must
   * be the name of its program.
   */
  readonly programs: ReadonlyMap<Program, string>;
  /** Go linker flags. Without them, a Kubernetes binary reports version v0.0.0 and rejects its peers. */
  readonly ldflags: string;
  /** Go build tags, separated by commas. @default none */
  readonly tags?: string;
  /** Returns the upstream release of a program, or undefined if there is none for the platform. */
  readonly release?: (program: Program, platform: Platform) => Release | undefined;
}

export interface Platform {
  readonly os: 'linux' | 'darwin';
  readonly arch: 'amd64' | 'arm64';
}

const KUBERNETES = '1.35.4';
const ETCD = '3.6.5';
const KWOK = '0.7.0';
const KUBEVIRT = '1.6.0';
const TOXIPROXY = '2.12.0';
const GOVMOMI = '0.56.0';
const GOPHER_LUA = '1.1.1';
/** Version of the Go module. The release of Prometheus is called 3.<minor - 300>.<patch>. */
const PROMETHEUS = '0.311.3';
const HELM = '3.19.5';

const [, minor = ''] = KUBERNETES.split('.');

export const bundles: readonly Bundle[] = [
  {
    name: 'etcd',
    version: ETCD,
    programs: new Map([['etcd', 'go.etcd.io/etcd/server/v3']]),
    ldflags: '-s -w',
    release: (_program, { os, arch }) => {
      if (os !== 'linux') return undefined; // upstream ships zip files for darwin
      const base = `https://github.com/etcd-io/etcd/releases/download/v${ETCD}`;
      const name = `etcd-v${ETCD}-${os}-${arch}`;
      return {
        url: `${base}/${name}.tar.gz`,
        member: `${name}/etcd`,
        checksum: { url: `${base}/SHA256SUMS`, read: fromSums(`${name}.tar.gz`) },
      };
    },
  },
  {
    name: 'kubernetes',
    version: KUBERNETES,
    programs: new Map<Program, string>([
      ['kube-apiserver', 'k8s.io/kubernetes/cmd/kube-apiserver'],
      ['kube-controller-manager', 'k8s.io/kubernetes/cmd/kube-controller-manager'],
      ['kube-scheduler', 'k8s.io/kubernetes/cmd/kube-scheduler'],
      ['kubectl', 'k8s.io/kubernetes/cmd/kubectl'],
    ]),
    ldflags: [
      '-s -w',
      `gitVersion=v${KUBERNETES}`,
      'gitMajor=1',
      `gitMinor=${minor}`,
      'gitTreeState=clean',
    ].join(' -X k8s.io/component-base/version.'),
    release: (program, { os, arch }) => {
      if (os !== 'linux') return undefined; // upstream publishes the servers for Linux only
      const url = `https://dl.k8s.io/release/v${KUBERNETES}/bin/${os}/${arch}/${program}`;
      return { url, checksum: { url: `${url}.sha256`, read: (text) => sha256.exec(text)?.[0] } };
    },
  },
  {
    name: 'kwok',
    version: KWOK,
    programs: new Map([['kwok', 'sigs.k8s.io/kwok/cmd/kwok']]),
    ldflags: `-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=v${KWOK}`,
    release: (_program, { os, arch }) => ({
      url: `https://github.com/kubernetes-sigs/kwok/releases/download/v${KWOK}/kwok-${os}-${arch}`,
      checksum: {
        // kwok publishes no checksum file, but GitHub's API returns the digest of each release asset.
        url: `https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v${KWOK}`,
        read: fromGitHub(`kwok-${os}-${arch}`),
      },
    }),
  },
  {
    name: 'kubevirt',
    version: KUBEVIRT,
    programs: new Map<Program, string>([
      ['virt-controller', 'kubevirt.io/kubevirt/cmd/virt-controller'],
      ['virt-api', 'kubevirt.io/kubevirt/cmd/virt-api'],
    ]),
    ldflags: `-s -w -X kubevirt.io/client-go/version.gitVersion=v${KUBEVIRT}`,
  },
  {
    name: 'vcsim',
    version: GOVMOMI,
    programs: new Map([['vcsim', '.']]),
    ldflags: '-s -w',
  },
  {
    name: 'lua',
    version: GOPHER_LUA,
    programs: new Map([['lua-health', '.']]),
    ldflags: '-s -w',
  },
  {
    name: 'toxiproxy',
    version: TOXIPROXY,
    programs: new Map([['toxiproxy-server', 'github.com/Shopify/toxiproxy/v2/cmd/server']]),
    ldflags: `-s -w -X github.com/Shopify/toxiproxy/v2.Version=${TOXIPROXY}`,
    release: (program, { os, arch }) => {
      const base = `https://github.com/Shopify/toxiproxy/releases/download/v${TOXIPROXY}`;
      const name = `${program}-${os}-${arch}`;
      return { url: `${base}/${name}`, checksum: { url: `${base}/checksums.txt`, read: fromSums(name) } };
    },
  },
  {
    name: 'promtool',
    version: PROMETHEUS,
    programs: new Map([['promtool', 'github.com/prometheus/prometheus/cmd/promtool']]),
    ldflags: `-s -w -X github.com/prometheus/common/version.Version=${PROMETHEUS}`,
    tags: 'remove_all_sd', // leaves out service discovery, which links the SDKs of a dozen clouds
    release: (program, { os, arch }) => {
      const version = PROMETHEUS.replace(/^0\.30?/, '3.');
      const base = `https://github.com/prometheus/prometheus/releases/download/v${version}`;
      const name = `prometheus-${version}.${os}-${arch}`;
      return {
        url: `${base}/${name}.tar.gz`,
        member: `${name}/${program}`,
        checksum: { url: `${base}/sha256sums.txt`, read: fromSums(`${name}.tar.gz`) },
      };
    },
  },
  {
    name: 'helm',
    version: HELM,
    programs: new Map([['helm', 'helm.sh/helm/v3/cmd/helm']]),
    // Sets the version of Kubernetes for which Helm renders charts without a cluster.
    ldflags: [
      '-s -w',
      `helm.sh/helm/v3/internal/version.version=v${HELM}`,
      'helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1',
      `helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=${minor}`,
    ].join(' -X '),
    release: (_program, { os, arch }) => {
      const url = `https://get.helm.sh/helm-v${HELM}-${os}-${arch}.tar.gz`;
      return {
        url,
        member: `${os}-${arch}/helm`,
        checksum: { url: `${url}.sha256sum`, read: (text) => sha256.exec(text)?.[0] },
      };
    },
  },
];

export function bundleOf(program: Program): Bundle {
  const bundle = bundles.find(({ programs }) => programs.has(program));
  if (bundle === undefined) throw new Error(`no bundle has ${program}`);
  return bundle;
}

const sha256 = /\b[0-9a-f]{64}\b/;

/** Reads a checksum from a file with lines of the form `<sha256>  <name>`. */
function fromSums(name: string) {
  return (text: string): string | undefined =>
    text
      .split('\n')
      .map((line) => line.trim().split(/\s+\*?/))
      .find(([sum, file]) => file === name && sum !== undefined && sha256.test(sum))?.[0];
}

/** Reads a checksum from GitHub's release API: `{assets: [{name, digest: "sha256:…"}]}`. */
function fromGitHub(name: string) {
  return (text: string): string | undefined => {
    const release: unknown = JSON.parse(text);
    if (typeof release !== 'object' || release === null || !('assets' in release)) return undefined;
    if (!Array.isArray(release.assets)) return undefined;
    const asset = release.assets.find((each) => each?.name === name);
    return sha256.exec(String(asset?.digest))?.[0];
  };
}
