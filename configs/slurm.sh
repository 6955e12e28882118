#!/bin/bash
# sbatch configs/slurm.sh [CONFIG [key=value ...]]     One rank a GPU. Submitted again, it goes on where it stopped.
# Settings of the initial conditions belong into CONFIG: going on, they have no meaning.
# MAKI names the program and MAKI_OUTPUT the directory, where they are not build/maki and output/cluster.
#SBATCH --job-name=maki
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=4          # one for each GPU of a node
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --exclusive
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@600            # ten minutes before the end: Maki writes stopped.hdf5 and ends well
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

config=${1:-configs/cluster.toml}
[ $# -eq 0 ] || shift
maki=${MAKI:-build/maki}

export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1} OMP_PROC_BIND=close OMP_PLACES=cores
# export NCCL_SOCKET_IFNAME=ib0      # where NCCL picks the wrong network
# export MAKI_PAYLOAD=staged         # where neither NCCL nor CUDA-aware MPI does on this machine

# Each job has a directory of its own and begins with the state that the one before it left.
output=${MAKI_OUTPUT:-output/cluster}
if [ -e "$output/done" ]; then echo "maki: $output is finished (remove $output/done to run it again)"; exit 0; fi
part=1
while [ -e "$output/part$part/stopped.hdf5" ]; do part=$((part + 1)); done
from=()
[ "$part" = 1 ] || from=(initial.kind=file "initial.file=$output/part$((part - 1))/stopped.hdf5")

status=0
srun --mpi=pmix --cpu-bind=cores "$maki" run "$config" "run.output_directory=$output/part$part" run.overwrite=true \
  ${from[@]+"${from[@]}"} "$@" || status=$?
case $status in
  0) echo "maki: done"; touch "$output/done" ;;
  3) echo "maki: stopped in $output/part$part; sbatch $0 again goes on from there" ;;
  *) echo "maki: failed with exit status $status" >&2 ;;
esac
exit "$status"
