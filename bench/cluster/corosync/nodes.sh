# Three daemons of Corosync, each with a network and folders of its own, and a client beside each. It is the first
# process of namespaces of its own: all that it starts ends with it.
#
#   nodes.sh CLIENT DIR SIZE SECONDS     prints what the third client prints
set -e
client=$1 dir=$2 size=$3 seconds=$4
ip link add bridge type bridge
ip link set bridge up

members=""
for node in 1 2 3; do
    members="$members
    node {
        ring0_addr: 10.1.1.$node
        nodeid: $node
        name: node-$node
    }"
done

for node in 1 2 3; do
    mkdir -p "$dir/$node"
    cat > "$dir/$node/corosync.conf" <<END
totem {
    version: 2
    cluster_name: bench
    transport: udpu
}
system {
    sched_rr: no
}
logging {
    to_stderr: no
    to_syslog: no
    to_logfile: yes
    logfile: $dir/$node/log
}
nodelist {$members
}
END
    case $node in
        2) task="send $size $seconds" ;;
        *) task="take" ;;
    esac
    unshare --net --mount sh -e -c "
        until ip link set eth0 up 2> /dev/null; do sleep 0.05; done
        ip addr add 10.1.1.$node/24 dev eth0
        ip link set lo up
        for place in /run /dev/shm /var/lib/corosync; do mount -t tmpfs none \$place; done
        corosync -f -c $dir/$node/corosync.conf > $dir/$node/out 2>&1 &
        exec $client $task
    " > "$dir/$node/said" 2> "$dir/$node/wrong" &
    while [ "$(readlink /proc/$!/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
    ip link add "to-$node" type veth peer name eth0 netns $!
    ip link set "to-$node" master bridge up
done
wait
cat "$dir"/?/wrong >&2
cat "$dir/3/said"
