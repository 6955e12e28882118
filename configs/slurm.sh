#!/bin/bash
# sbatch configs/slurm.sh [CONFIG [key=value ...]]     One rank a GPU. Submitted again, or put back into the queue after a
# node has failed, it goes on from the last restart.
# Settings of box, cosmology and initial conditions belong into CONFIG: they make the run, and may not change on the way.
# MAKI names the program and MAKI_OUTPUT the directory, where they are not build/maki and output/cluster.
#SBATCH --job-name=maki
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=4          # one for each GPU of a node
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --exclusive
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@600            # ten minutes before the end: Maki writes a restart and ends well
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

config=${1:-configs/cluster.toml}
[ $# -eq 0 ] || shift
maki=${MAKI:-build/maki}

export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1} OMP_PROC_BIND=close OMP_PLACES=cores
# export NCCL_SOCKET_IFNAME=ib0      # where NCCL picks the wrong network
# export MAKI_PAYLOAD=staged         # where neither NCCL nor CUDA-aware MPI does on this machine

# A job goes on from the last restart in the directory, however the one before it ended.
output=${MAKI_OUTPUT:-output/cluster}
if [ -e "$output/done" ]; then echo "maki: $output is finished (remove $output/done to run it again)"; exit 0; fi
if compgen -G "$output/restart_*/complete.toml" >/dev/null; then
  what=(resume "$output")
elif [ -e "$output/stopped.hdf5" ]; then
  echo "maki: $output holds a stopped run without a restart (run.restarts_kept = 0): going on needs one; move it away to begin again" >&2
  exit 1
else
  what=(run "$config" "run.output_directory=$output" run.overwrite=true)
fi

status=0
srun --mpi=pmix --cpu-bind=cores "$maki" "${what[@]}" "$@" || status=$?
case $status in
  0) echo "maki: done"; touch "$output/done" ;;
  3) echo "maki: stopped; sbatch $0 again goes on in $output" ;;
  *) echo "maki: failed with exit status $status; sbatch $0 again goes on from the last restart in $output" >&2 ;;
esac
exit "$status"
