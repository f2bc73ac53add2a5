import { type Access, inClusterAccess, kubeconfigAccess, type World } from '@vmwright/runtime';

/** Returns access to the cluster of the pod that this program runs in, or to that of the kubeconfig. */
export function clusterAccess(world: World): Promise<Access> {
  const isInPod = process.env.KUBECONFIG === undefined && process.env.KUBERNETES_SERVICE_HOST !== undefined;
  return isInPod ? inClusterAccess({ clock: world }) : kubeconfigAccess({ world });
}
